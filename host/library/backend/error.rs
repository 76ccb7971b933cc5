//! Reasons why a backend cannot do what it is told.

use cuda_driver::{BlasError, DriverError, NcclError, NoGpu};
use cuda_std::emu::Fault;

use crate::fields::FieldFault;
use crate::plan::PlanError;
use crate::refusals::Refusals;
use crate::settings::Setting;
use crate::variants::OutOfRange;

/// Reason why a force could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForceError {
    /// The GPU or its driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// There is no GPU to use.
    #[error(transparent)]
    NoGpu(#[from] NoGpu),
    /// There is no library for linear algebra, or it refused.
    #[error(transparent)]
    Blas(#[from] BlasError),
    /// There is no library for exchanges between GPUs, or it refused.
    #[error(transparent)]
    Nccl(#[from] NcclError),
    /// The emulator found a kernel at fault.
    #[error("the kernel is at fault: {0}")]
    Kernel(#[from] Box<Fault>),
    /// An integrator asks for more than accelerations.
    #[error("this backend does not compute jerks, which Hermite's schemes need")]
    NoJerks,
    /// A step of sixth order that all bodies share, on a device.
    #[error("this backend does not compute snaps for all bodies at once")]
    NoSnaps,
    /// The variant's error would have no bound.
    #[error(transparent)]
    OutOfRange(#[from] OutOfRange),
    /// A pace asks for a step for each body.
    #[error("this backend does not take block time steps, which are not computed here")]
    NoBlockSteps,
    /// Several devices for work of one.
    #[error("{0} on one device alone: name one, such as {one}", one = Setting::Device.with("cuda:0"))]
    OneDevice(&'static str),
    /// Several GPUs that may not compute the same bits, for work that needs it.
    #[error("{work} on GPUs of one kind, and {}, {}: name others", gpus[0], gpus[1])]
    OtherGpus {
        /// Work that was to be done.
        work: &'static str,
        /// Two of the GPUs.
        gpus: [String; 2],
    },
    /// GPUs of ranks that may not compute the same bits, for work that needs it.
    #[error(
        "{work} on GPUs of one kind with drivers of one version, and rank {} has {}, rank {} {}: start the ranks on \
         machines with the same GPUs and drivers, or choose {}",
        gpus[0].0, gpus[0].1, gpus[1].0, gpus[1].1, Setting::Device.with("cpu")
    )]
    OtherGpusOfRanks {
        /// Work that was to be done.
        work: &'static str,
        /// Two of the ranks, and what they have.
        gpus: [(usize, String); 2],
    },
    /// Several GPUs that do not read each other's memory, for work that needs it.
    #[error(
        "{work} on GPUs that read each other's memory directly, and GPU {from} cannot read that of GPU {to}: \
         name one, such as {one}, or GPUs between which `allpairs devices` finds a \
         direct way", one = Setting::Device.with(format_args!("cuda:{from}"))
    )]
    NoDirectWay {
        /// Work that was to be done.
        work: &'static str,
        /// Number of the GPU that cannot read.
        from: u32,
        /// Number of the GPU whose memory it is.
        to: u32,
    },
    /// More devices than block time steps are shared by.
    #[error(
        "block time steps on a device are shared by at most 255 ranks, and there are {0}: start fewer, or choose \
         {cpu}", cpu = Setting::Device.with("cpu")
    )]
    TooManyDevices(usize),
    /// Needs that do not go together, or with the place or the kernel.
    #[error(transparent)]
    Refused(#[from] Refusals),
    /// A place of other ranks.
    #[error("devices of {chosen} ranks were chosen, and there are {there}")]
    OtherRanks {
        /// Ranks of the place.
        chosen: usize,
        /// Ranks that compute.
        there: usize,
    },
    /// Another rank's device refused.
    #[error("rank {rank}: {why}")]
    OfRank {
        /// The rank.
        rank: usize,
        /// Error of that rank.
        why: String,
    },
    /// A close pair, most often.
    #[error("{}", too_short(*body, *allowed, *shortest))]
    StepTooShort {
        /// Index of the body.
        body: usize,
        /// Step that its accuracy allows.
        allowed: f64,
        /// Shortest step.
        shortest: f64,
    },
    /// Changes of bodies that a run was to make on its way.
    #[error(
        "the changes of the bodies with the ids {ids:?} at time {time:?} cannot be made: {why}"
    )]
    Change {
        /// Ids of the bodies.
        ids: Vec<u64>,
        /// Time of the changes.
        time: f64,
        /// Reason.
        why: String,
    },
    /// A number overflowed, most often where bodies came too close.
    #[error(
        "the acceleration, position or velocity of body {body} is not a finite number any more: \
         soften the force, or take shorter steps"
    )]
    NotFinite {
        /// Index of the body.
        body: usize,
    },
    /// A saved state of another integrator.
    #[error(
        "the saved state has no {missing}, which {integrator} needs: it is of a run with another integrator"
    )]
    NotSaved {
        /// Derivatives that are missing.
        missing: &'static str,
        /// Name of the integrator.
        integrator: &'static str,
    },
    /// A saved state of another backend or of other bodies.
    #[error("the saved state is not of this backend: {0}")]
    OtherState(&'static str),
    /// The launch does not fit the device.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// External fields that cannot be computed here, or not at this time.
    #[error(transparent)]
    Field(#[from] FieldFault),
}

impl ForceError {
    /// Returns whether a device or its driver refused: others of the same kind may not have.
    pub(crate) const fn is_of_a_device(&self) -> bool {
        matches!(
            self,
            Self::Driver(_) | Self::NoGpu(_) | Self::Blas(_) | Self::Nccl(_) | Self::Kernel(_)
        )
    }
}

/// Step, by the shortest that there is, below which it may be that pulls on the body cancel.
const FAR_TOO_SHORT: f64 = 1.0 / 1024.0;

/// Message about a body whose step would be shorter than the shortest, or is no number.
fn too_short(body: usize, allowed: f64, shortest: f64) -> String {
    match allowed.is_nan() {
        true => format!(
            "the force on body {body} has grown beyond all numbers, for another body came too near for the \
             digits of pairs: soften the force, or choose {}",
            Setting::Accuracy.with("double")
        ),
        false => {
            // Steps of bodies that come near each other are shortened little by little.
            let in_the_middle = match allowed < FAR_TOO_SHORT * shortest {
                true => format!(
                    "; on a device it may be that the pulls on the body cancel: choose {}, which finds a step for it",
                    Setting::Device.with("cpu")
                ),
                false => String::new(),
            };
            format!(
                "body {body} needs steps of {allowed:.3e}, and the shortest is {shortest:.3e}: soften the force, \
                 or choose a shorter longest step{in_the_middle}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of steps that are far too short alone.
    #[test]
    fn a_body_in_the_middle_is_advised_about() {
        let message = |allowed| {
            let error = ForceError::StepTooShort {
                body: 2,
                allowed,
                shortest: 1e-13,
            };
            error.to_string()
        };
        let advice = "the pulls on the body cancel: choose the `device` cpu,";
        assert!(message(0.0).contains(advice), "{}", message(0.0));
        assert!(!message(5e-14).contains("cancel"), "{}", message(5e-14));
    }
}
