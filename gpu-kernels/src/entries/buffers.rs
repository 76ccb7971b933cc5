//! Names under which kernels take memory.

/// A line each: documentation and name.
macro_rules! buffers {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Memory of a device, by the names of kernels' pointer parameters. Sums of block steps have two names, of which
        /// each is the buffer of one parity.
        #[allow(non_camel_case_types, reason = "the names of parameters")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Buffer {
            $($(#[$doc])* $name,)*
        }

        impl Buffer {
            /// Number of names.
            pub const COUNT: usize = [$(Self::$name),*].len();
        }
    };
}

buffers! {
    /// Positions, masses and velocities.
    state,
    /// Accelerations.
    acceleration,
    /// Derivatives of the accelerations in time.
    jerk,
    /// Accelerations by external fields alone.
    of_fields,
    /// Parameters and paths of external fields.
    fields,
    /// The dominant body of a term of relativity, and its constants.
    centre,
    /// Kinetic and potential energy of the bodies of each block.
    energies,
    /// Positions, velocities, accelerations and jerks at the beginning of a step.
    beginning,
    /// The longest next step of each body.
    own_steps,
    /// Sums of the tiles of [`symmetric`](crate::schedule::symmetric), each in its slab.
    slabs,
    /// Sums over parts of the sources.
    partial,
    /// The vector of ones that a matrix of partial sums is multiplied by.
    ones,
    /// Boxes around leaves of bodies.
    boxes,
    /// The cube around all bodies.
    bounds,
    /// Places of bodies along the Hilbert curve.
    keys,
    /// The keys, sorted by one digit more.
    keys_to,
    /// Slots along the Hilbert curve.
    order,
    /// The order, sorted by one digit more.
    order_to,
    /// Number of keys with each digit, then the place where they start.
    starts,
    /// The state in its new order.
    state_to,
    /// Accelerations in their new order.
    acceleration_to,
    /// Number of the body in each slot.
    numbers,
    /// Numbers of the bodies in their new order.
    numbers_to,
    /// Indices of the sources that are apart from the targets.
    indices,
    /// The sources that are apart from the targets.
    sources,
    /// Kicks and drifts of a step.
    moves,
    /// Sources at each evaluation of steps.
    kept,
    /// Snaps and crackles, or regular accelerations and jerks in a neighbour scheme.
    higher,
    /// The beginning of each body's step, in ticks.
    begun,
    /// The level of each body's step.
    levels,
    /// The step that each body is allowed.
    steps,
    /// The active bodies of each slice.
    targets,
    /// Sums of the active bodies over each slice of the sources; on several devices the addresses of their rows.
    partials,
    /// Numbers of active bodies and the next end of a step, by slices, of both parities.
    posts,
    /// The clock.
    time,
    /// Sums over all sources of a device.
    row,
    /// The sums of the other parity.
    row_before,
    /// Bodies and targets that the host tells.
    told,
    /// Radius of each body's sphere of neighbours, and the regular step that it is allowed.
    spheres,
    /// The beginning of each body's regular step, and its level.
    regular_steps,
    /// Records of bodies; of independent systems, the constants of each.
    records,
    /// Lists of neighbours.
    lists,
    /// The lengths of the lists.
    counts,
    /// Bodies that end an irregular step.
    irregular_targets,
    /// Bodies that end a regular step.
    regular_targets,
    /// Irregular forces.
    irregular_sums,
    /// The irregular forces of the other parity.
    irregular_before,
    /// Regular forces.
    regular_sums,
    /// The regular forces of the other parity.
    regular_before,
    /// Sums and lists of each slice for regular forces.
    segments,
    /// Positions and masses by places.
    positions,
    /// Velocities: by places, or of the bodies of a trajectory.
    velocities,
    /// Positions of targets, with the squares of their radii.
    target_positions,
    /// Velocities of targets, with their places.
    target_velocities,
    /// The order of the targets along the Hilbert curve.
    target_order,
    /// Positions and masses along the Hilbert curve.
    along_curve,
    /// Velocities along the Hilbert curve, with places.
    moving,
    /// Leaves of bodies next to each other on the Hilbert curve.
    leaves,
    /// Bits of near leaves.
    near,
    /// Bits of the far leaves for tensor cores.
    on_tensor,
    /// Sums over far leaves.
    far,
    /// The state that a step of independent systems begins with.
    from,
    /// The state that a step of independent systems ends with.
    to,
    /// Points at which fields are wanted.
    points,
    /// Sums of each part of the sources.
    sums,
    /// Sums over all parts of the sources.
    total,
    /// An array of the caller.
    array,
    /// Positions, masses and other numbers of the bodies of sums over pairs.
    planes,
    /// Numbers of each system.
    scalars,
    /// Sum of a plane over each system.
    by_system,
    /// The frame of each system.
    frames,
    /// Bodies in rows of four.
    bodies,
    /// More numbers of the bodies, in rows of four.
    more,
    /// Results of sums over pairs.
    results,
    /// Derivatives that a trajectory is taken back with.
    derivatives,
}

/// A pointer parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Memory that it points to.
    pub buffer: Buffer,
    /// True if the kernel writes there.
    pub writes: bool,
}

impl Pointer {
    /// A pointer to memory that a kernel reads.
    #[inline]
    pub const fn read(buffer: Buffer) -> Self {
        Self {
            buffer,
            writes: false,
        }
    }

    /// A pointer to memory that a kernel writes.
    #[inline]
    pub const fn written(buffer: Buffer) -> Self {
        Self {
            buffer,
            writes: true,
        }
    }
}
