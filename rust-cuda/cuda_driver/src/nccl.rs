//! NVIDIA's library for exchanges between the GPUs of several processes, NCCL, found when it is needed: a
//! program that can use it neither links nor needs it. Of its functions there are those that copy.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::device::Gpu;
use crate::error::{DriverError, NoLibrary};
use crate::library::{Found, Wanted};
use crate::memory::DeviceMemory;
use crate::stream::Stream;

/// Environment variable that overrides the search for NCCL: the path of a library, or `none` to
/// behave as if there were none.
pub const NCCL_VARIABLE: &str = "ALLPAIRS_LIBNCCL";

const NCCL: Wanted = Wanted {
    name: "NCCL",
    origin: "a package of its own and with PyTorch",
    variable: NCCL_VARIABLE,
    names: &["libnccl.so.2"],
};

/// Time for which a host that waits for an exchange looks all the time: many take some 30 µs.
const AWAKE: Duration = Duration::from_millis(1);
/// Divisor of the time waited so far: for so small a part of it the host then sleeps between two looks.
const SLEEP: u32 = 32;
/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// Failure of an exchange by NCCL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NcclError {
    /// There is none.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The library refused.
    #[error(
        "{call}: {why} (code {code}); NCCL_DEBUG=WARN says more, and {NCCL_VARIABLE}=none does without"
    )]
    Refused {
        /// Function of the library.
        call: &'static str,
        /// The library's own words.
        why: String,
        /// Code that it returned.
        code: i32,
    },
}

/// `ncclComm_t`.
type Handle = *mut c_void;

/// Identity of a communicator, which all its members know before there is one: an `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommunicatorId([u8; 128]);

/// Functions of the library that are used; it is never unloaded.
#[derive(Debug)]
struct Functions {
    _found: Found,
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    new_id: unsafe extern "C" fn(*mut CommunicatorId) -> c_int,
    join: unsafe extern "C" fn(*mut Handle, c_int, CommunicatorId, c_int) -> c_int,
    fault: unsafe extern "C" fn(Handle, *mut c_int) -> c_int,
    begin: unsafe extern "C" fn() -> c_int,
    end: unsafe extern "C" fn() -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Handle, *mut c_void) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Handle, *mut c_void) -> c_int,
    describe: unsafe extern "C" fn(c_int) -> *const c_char,
}

fn functions() -> Result<&'static Functions, &'static NoLibrary> {
    static FUNCTIONS: OnceLock<Result<Functions, NoLibrary>> = OnceLock::new();
    FUNCTIONS.get_or_init(look_up).as_ref()
}

fn look_up() -> Result<Functions, NoLibrary> {
    let found = NCCL.find()?;
    // SAFETY: the types are those of the library's header, a C enum being an int.
    unsafe {
        Ok(Functions {
            version: NCCL.function(&found, c"ncclGetVersion")?,
            new_id: NCCL.function(&found, c"ncclGetUniqueId")?,
            join: NCCL.function(&found, c"ncclCommInitRank")?,
            fault: NCCL.function(&found, c"ncclCommGetAsyncError")?,
            begin: NCCL.function(&found, c"ncclGroupStart")?,
            end: NCCL.function(&found, c"ncclGroupEnd")?,
            send: NCCL.function(&found, c"ncclSend")?,
            receive: NCCL.function(&found, c"ncclRecv")?,
            describe: NCCL.function(&found, c"ncclGetErrorString")?,
            _found: found,
        })
    }
}

impl Functions {
    fn done(&self, call: &'static str, code: c_int) -> Result<(), NcclError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library takes any code.
        let text = unsafe { (self.describe)(code) };
        let why = match text.is_null() {
            true => "an error".to_owned(),
            // SAFETY: a text of the library's own, which it never takes back.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        };
        Err(NcclError::Refused { call, why, code })
    }
}

/// A version of NCCL as it numbers them: 22703 is 2.27.3, and before 2.9 2804 is 2.8.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NcclVersion(pub u32);

impl fmt::Display for NcclVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number) = self;
        let of_major = if *number < 10_000 { 1_000 } else { 10_000 };
        let (major, minor) = (number / of_major, number % of_major / 100);
        write!(f, "{major}.{minor}.{}", number % 100)
    }
}

/// Version of the NCCL in use. Loads it, but does not initialise it.
///
/// # Errors
///
/// Why there is none.
pub fn nccl_version() -> Result<NcclVersion, NcclError> {
    let functions = functions().map_err(NoLibrary::clone)?;
    let mut version = 0;
    // SAFETY: a place for the number.
    let code = unsafe { (functions.version)(&mut version) };
    functions.done("ncclGetVersion", code)?;
    Ok(NcclVersion(version.unsigned_abs()))
}

impl CommunicatorId {
    /// Identity of a communicator that is to be made, for one of its members to tell the others.
    ///
    /// # Errors
    ///
    /// If there is no library, or it refuses.
    pub fn new() -> Result<Self, NcclError> {
        let functions = functions().map_err(NoLibrary::clone)?;
        let mut id = Self([0; 128]);
        // SAFETY: a place for the identity.
        let code = unsafe { (functions.new_id)(&mut id) };
        functions.done("ncclGetUniqueId", code)?;
        Ok(id)
    }

    /// The bytes to tell.
    pub fn bytes(&self) -> &[u8; 128] {
        &self.0
    }

    /// Identity that another process has told.
    ///
    /// # Safety
    /// These are the [`bytes`](Self::bytes) of one that a library of the same version made: it takes them for
    /// addresses and the like, unchecked.
    pub unsafe fn from_bytes(bytes: [u8; 128]) -> Self {
        Self(bytes)
    }
}

/// Bytes of a GPU's memory that a member is sent or sends.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// The member at the other end.
    pub member: usize,
    /// Memory.
    pub memory: &'a DeviceMemory,
    /// Bytes of that memory.
    pub bytes: Range<usize>,
}

/// GPUs of several processes, of which each has one, that exchange bytes.
///
/// It is not taken down before the process ends: all members would have to do so at the same time.
#[derive(Debug)]
pub struct Communicator {
    handle: NonNull<c_void>,
    functions: &'static Functions,
    gpu: Gpu,
}

// SAFETY: the library's handle may change threads; not `Sync`, for it may serve one at a time only.
unsafe impl Send for Communicator {}

impl Communicator {
    /// Waits for all members.
    pub(crate) fn new(
        gpu: &Gpu,
        id: &CommunicatorId,
        [member, members]: [usize; 2],
    ) -> Result<Self, NcclError> {
        const CALL: &str = "ncclCommInitRank";
        let functions = functions().map_err(NoLibrary::clone)?;
        let (Ok(rank), Ok(size)) = (c_int::try_from(member), c_int::try_from(members)) else {
            let reason = format!("making a communicator of {members}");
            return Err(DriverError::refused(CALL, reason).into());
        };
        gpu.bind()?;
        let mut handle = null_mut();
        // SAFETY: a context is current, `handle` is a valid place for the handle, and the identity is the library's
        // own.
        let code = unsafe { (functions.join)(&mut handle, size, *id, rank) };
        functions.done(CALL, code)?;
        let handle = NonNull::new(handle).ok_or_else(|| NcclError::Refused {
            call: CALL,
            why: "no communicator".to_owned(),
            code: 0,
        })?;
        Ok(Self {
            handle,
            functions,
            gpu: gpu.clone(),
        })
    }

    /// Queues sending and receiving bytes, all at a time. Each member must receive what another sends it: as many
    /// pieces, of the same lengths, in the same order.
    ///
    /// # Errors
    ///
    /// Code 1 for bytes beyond the end of memory, for memory or a stream of another GPU, or while the host is
    /// looking at the bytes ([`DeviceMemory::on_host`]); else the library's refusal, or what has failed since the last exchange.
    pub fn exchange(
        &self,
        sent: &[Piece<'_>],
        received: &[Piece<'_>],
        stream: &Stream,
    ) -> Result<(), NcclError> {
        /// `ncclUint8`
        const BYTES: c_int = 1;
        const CALL: &str = "ncclGroupStart";
        if stream.context().raw() != self.gpu.context.raw() {
            let reason = "exchanging in a stream of another GPU".to_owned();
            return Err(DriverError::refused(CALL, reason).into());
        }
        let functions = self.functions;
        let handle = self.handle.as_ptr();
        let places = |call: &'static str, pieces: &[Piece<'_>]| {
            let places = pieces.iter().filter_map(|piece| {
                let (memory, bytes) = (piece.memory, &piece.bytes);
                let place = memory.place_on(&self.gpu, call, bytes.start, bytes.len());
                let pointer = place.transpose()?;
                // The library refuses this number, which no member has.
                let member = c_int::try_from(piece.member).unwrap_or(c_int::MAX);
                Some(pointer.map(|pointer| {
                    let place = std::ptr::with_exposed_provenance_mut(pointer as usize);
                    (place, bytes.len(), member)
                }))
            });
            places.collect::<Result<Vec<(*mut c_void, _, _)>, DriverError>>()
        };
        let (sent, received) = (places("ncclSend", sent)?, places("ncclRecv", received)?);
        self.gpu.bind()?;
        self.check("an exchange before")?;
        let stream = stream.raw().cast();
        // SAFETY: no pointers.
        functions.done(CALL, unsafe { (functions.begin)() })?;
        let queue = || {
            for (place, bytes, member) in sent {
                // SAFETY: the bytes lie within their memory, of the GPU whose stream this is, as checked above: it
                // outlives what is queued there. The library refuses numbers that no member has.
                let code = unsafe { (functions.send)(place, bytes, BYTES, member, handle, stream) };
                functions.done("ncclSend", code)?;
            }
            for (place, bytes, member) in received {
                // SAFETY: as above.
                let code =
                    unsafe { (functions.receive)(place, bytes, BYTES, member, handle, stream) };
                functions.done("ncclRecv", code)?;
            }
            Ok(())
        };
        let queued = queue();
        // SAFETY: no pointers. Ended also after a refusal, or what follows would be of this group.
        let ended = functions.done("ncclGroupEnd", unsafe { (functions.end)() });
        queued.and(ended)
    }

    /// Waits until all that was queued on a stream is done, exchanges among it. An exchange that has failed, for a
    /// member or the way to it is lost, may never be done: it is not waited for.
    ///
    /// # Errors
    ///
    /// The first failure of any queued work that has not been reported yet, or what the library says of the
    /// exchange.
    pub fn wait(&self, stream: &Stream) -> Result<(), NcclError> {
        let began = Instant::now();
        while !stream.is_done()? {
            let waited = began.elapsed();
            if waited < AWAKE {
                thread::yield_now();
            } else {
                self.check("an exchange")?;
                thread::sleep((waited / SLEEP).min(LONGEST_SLEEP));
            }
        }
        Ok(())
    }

    /// Checks that nothing has failed in the background.
    fn check(&self, what: &'static str) -> Result<(), NcclError> {
        let (functions, mut fault) = (self.functions, 0);
        // SAFETY: the handle lives as long as the process, and `fault` is a place for a number.
        let code = unsafe { (functions.fault)(self.handle.as_ptr(), &mut fault) };
        functions.done("ncclCommGetAsyncError", code)?;
        functions.done(what, fault)
    }
}
