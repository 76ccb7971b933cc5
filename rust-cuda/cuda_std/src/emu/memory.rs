//! The memory that a launch's threads see, each access checked: bounds, alignment, permission,
//! contents, order.

use super::fault::Access;
use super::region::Region;
use super::shadow::{Clock, Line, Objection, Shadow, Stamp};

/// An access that a kernel wants to make.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) access: Access,
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) alignment: usize,
}

impl Attempt {
    /// An access to a `T`.
    #[inline]
    pub(super) fn of<T>(access: Access, address: usize) -> Self {
        Self {
            access,
            address,
            bytes: size_of::<T>(),
            alignment: align_of::<T>(),
        }
    }
}

/// A piece of memory, with its bounds and its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The block's dynamic shared memory.
    Shared,
    /// The array with that index in the block's static shared memory.
    Array(usize),
    /// The launch's region with that index.
    Region(usize),
}

/// A byte of a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Byte {
    pub(super) place: Piece,
    pub(super) offset: usize,
}

/// Why an access is refused; the launch makes a [`Fault`](super::Fault) of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not inside the memory, or not inside one region.
    Bounds,
    /// No multiple of the alignment.
    Misaligned(Byte),
    /// A write where only reads are allowed.
    ReadOnly(Byte),
    /// Not ordered after this earlier access.
    Race {
        byte: Byte,
        earlier: Access,
        by: Stamp,
        line: Line,
    },
    /// A read of what the block has not written.
    Unwritten(Byte),
}

impl Refusal {
    fn from(objection: Objection, place: Piece) -> Self {
        match objection {
            Objection::Race {
                offset,
                earlier,
                by,
                line,
            } => Self::Race {
                byte: Byte { place, offset },
                earlier,
                by,
                line,
            },
            Objection::Unwritten { offset } => Self::Unwritten(Byte { place, offset }),
        }
    }
}

/// Bytes that belong to a block. The next block inherits them, but cannot read them: to the shadow they are
/// unwritten.
pub(super) struct SharedMemory {
    /// Aligned for the widest access.
    words: Box<[u128]>,
    bytes: usize,
    shadow: Shadow<false>,
    place: Piece,
}

impl SharedMemory {
    pub(super) fn new(bytes: usize, place: Piece) -> Self {
        Self {
            words: vec![0; bytes.div_ceil(size_of::<u128>())].into(),
            bytes,
            shadow: Shadow::new(bytes),
            place,
        }
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Name of this memory.
    pub(super) fn piece(&self) -> Piece {
        self.place
    }

    /// The first byte.
    pub(super) fn pointer(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }

    /// Offset of an address of the host in this memory, or at its end.
    #[inline]
    pub(super) fn offset_of(&self, address: usize) -> Option<usize> {
        let offset = address.wrapping_sub(self.words.as_ptr().addr());
        (offset <= self.bytes).then_some(offset)
    }

    /// The first of the bytes, if the access is allowed.
    #[inline]
    pub(super) fn check(&mut self, attempt: Attempt, clock: Clock) -> Result<*mut u8, Refusal> {
        let Attempt {
            access,
            address,
            bytes,
            alignment,
        } = attempt;
        if address > self.bytes || bytes > self.bytes - address {
            return Err(Refusal::Bounds);
        }
        if !address.is_multiple_of(alignment) {
            return Err(Refusal::Misaligned(Byte {
                place: self.place,
                offset: address,
            }));
        }
        match self.shadow.access(access, address, bytes, clock) {
            Ok(()) => Ok(self.pointer().wrapping_add(address)),
            Err(objection) => Err(Refusal::from(objection, self.place)),
        }
    }
}

/// One region's bounds and history. Reads of read-only regions need no history.
struct Tracked {
    start: usize,
    bytes: usize,
    writable: bool,
    shadow: Shadow<true>,
}

/// The launch's regions.
pub(super) struct GlobalMemory {
    regions: Vec<Tracked>,
    /// The region of the last access, where the next is sought first.
    last: usize,
}

impl GlobalMemory {
    pub(super) fn new(regions: &[Region<'_>]) -> Self {
        let regions = regions
            .iter()
            .map(|region| Tracked {
                start: region.start(),
                bytes: region.bytes(),
                writable: region.is_writable(),
                shadow: Shadow::new(region.bytes()),
            })
            .collect();
        Self { regions, last: 0 }
    }

    /// Checks whether the access is allowed.
    #[inline]
    pub(super) fn check(&mut self, attempt: Attempt, clock: Clock) -> Result<(), Refusal> {
        let Attempt {
            access,
            address,
            bytes,
            alignment,
        } = attempt;
        let (index, offset) = self.locate(address, bytes).ok_or(Refusal::Bounds)?;
        let place = Piece::Region(index);
        let byte = Byte { place, offset };
        let region = &mut self.regions[index];
        if !offset.is_multiple_of(alignment) {
            return Err(Refusal::Misaligned(byte));
        }
        if !region.writable {
            return if access == Access::Read {
                Ok(())
            } else {
                Err(Refusal::ReadOnly(byte))
            };
        }
        match region.shadow.access(access, offset, bytes, clock) {
            Ok(()) => Ok(()),
            Err(objection) => Err(Refusal::from(objection, place)),
        }
    }

    /// True if the address is less than `distance` in front of a region or behind it.
    pub(super) fn is_near(&self, address: usize, distance: usize) -> bool {
        self.regions.iter().any(|region| {
            let offset = address.wrapping_add(distance).wrapping_sub(region.start);
            offset < region.bytes + 2 * distance
        })
    }

    /// The region that holds all of the bytes, and their offset in it.
    #[inline]
    pub(super) fn locate(&mut self, address: usize, size: usize) -> Option<(usize, usize)> {
        let offset_in = |region: &Tracked| {
            let offset = address.wrapping_sub(region.start);
            (offset <= region.bytes && size <= region.bytes - offset).then_some(offset)
        };
        if let Some(offset) = self.regions.get(self.last).and_then(offset_in) {
            return Some((self.last, offset));
        }
        let found = self
            .regions
            .iter()
            .enumerate()
            .find_map(|(index, region)| Some((index, offset_in(region)?)));
        self.last = found.map_or(self.last, |(index, _)| index);
        found
    }
}

/// Place where an access outside all regions lies, from the nearest of them.
pub(super) fn nearest(regions: &[Region<'_>], address: usize) -> String {
    let distance = |region: &Region<'_>| {
        let end = region.start() + region.bytes();
        region
            .start()
            .saturating_sub(address)
            .max(address.saturating_sub(end))
    };
    let Some(region) = regions.iter().min_by_key(|region| distance(region)) else {
        return "the launch has no global memory".to_owned();
    };
    let (name, bytes) = (region.name(), region.bytes());
    if address < region.start() {
        let before = region.start() - address;
        format!("{before} bytes before the start of region `{name}` ({bytes} bytes)")
    } else {
        let offset = address - region.start();
        format!("offset {offset} in region `{name}`, which has {bytes} bytes")
    }
}
