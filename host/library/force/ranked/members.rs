//! GPUs of ranks that exchange by NCCL.

use std::sync::{Arc, Mutex, PoisonError};

use cuda_driver::CommunicatorId;

use super::of_all;
use crate::backend::ForceError;
use crate::force::cuda::{Cuda, Members};
use crate::ranks::{Team, UNAVAILABLE};

/// The communicator of the GPUs of these numbers, of which each rank has one: made once, for it lasts as long as the
/// process.
static MADE: Mutex<Option<(Vec<u32>, Members)>> = Mutex::new(None);

/// Name of the wait for the other ranks, with what helps where it is in vain.
const START: &str = "the start of NCCL (NCCL_SOCKET_IFNAME chooses its network, ALLPAIRS_LIBNCCL=none does without it)";

/// This rank's GPU among those of all ranks, whose numbers are these.
///
/// Where NCCL refuses the GPU of a rank, all ranks end: the others wait for it.
///
/// # Errors
/// If rank 0 has no NCCL.
pub(super) fn join(gpu: Cuda, numbers: &[u32], team: &Team) -> Result<Cuda, ForceError> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let members = match &*made {
        Some((of, members)) if of == numbers => Arc::clone(members),
        _ => {
            let id = match team.rank() {
                0 => CommunicatorId::new().map(|id| *id.bytes()),
                _ => Ok([0; 128]),
            };
            let mut id = of_all(id.map_err(ForceError::from), team)?;
            team.broadcast(&mut id);
            // SAFETY: rank 0 has just made it, in the same version of the library.
            let id = unsafe { CommunicatorId::from_bytes(id) };
            let (rank, size) = (team.rank(), team.size());
            let joined = team.waiting(START, || gpu.join(&id, rank, size));
            let joined = joined.unwrap_or_else(|why| team.abort(UNAVAILABLE, &why.to_string()));
            let members = Arc::new(Mutex::new(joined));
            *made = Some((numbers.to_vec(), Arc::clone(&members)));
            members
        }
    };
    Ok(gpu.of_members(members))
}
