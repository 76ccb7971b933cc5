//! CUDA's library for linear algebra, cuBLAS, found when it is needed: a program that can use it
//! neither links nor needs it. Of its functions there is the one that is used here.

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use crate::device::Gpu;
use crate::error::{DriverError, NoLibrary};
use crate::library::{Found, Wanted};
use crate::memory::DeviceMemory;
use crate::stream::Stream;

/// Environment variable that overrides the search for cuBLAS: the path of a library, or `none` to
/// behave as if there were none.
pub const BLAS_VARIABLE: &str = "ALLPAIRS_LIBCUBLAS";

const CUBLAS: Wanted = Wanted {
    name: "cuBLAS",
    origin: "the CUDA toolkit",
    variable: BLAS_VARIABLE,
    // Its second interface is the same in all of them.
    names: if cfg!(windows) {
        &["cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"]
    } else {
        &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11"]
    },
};

/// Memory that the library works in. It would allocate some when it needs it, and must not while
/// work is recorded.
const WORKSPACE_BYTES: usize = 4 << 20;

/// Failure of work for cuBLAS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlasError {
    /// There is none.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The library refused.
    #[error("{call}: {} (status {status})", describe(*status))]
    Refused {
        /// Function of the library.
        call: &'static str,
        /// Status that it returned.
        status: i32,
    },
}

/// A status in words, as the library's header names it.
fn describe(status: i32) -> &'static str {
    match status {
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        _ => "an error of cuBLAS",
    }
}

/// `cublasHandle_t`.
type Handle = *mut c_void;

/// Functions of the library that are used; it is never unloaded.
#[derive(Debug)]
struct Functions {
    found: Found,
    create: unsafe extern "C" fn(*mut Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> c_int,
    set_workspace: unsafe extern "C" fn(Handle, *mut c_void, usize) -> c_int,
    multiply: Multiply,
}

/// `cublasSgemv_v2`: handle, transposition, rows, columns, α, matrix and its leading dimension, x and
/// its stride, β, y and its stride.
type Multiply = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;

fn functions() -> Result<&'static Functions, &'static NoLibrary> {
    static FUNCTIONS: OnceLock<Result<Functions, NoLibrary>> = OnceLock::new();
    FUNCTIONS.get_or_init(look_up).as_ref()
}

fn look_up() -> Result<Functions, NoLibrary> {
    let found = CUBLAS.find()?;
    // SAFETY: the types are those of the library's header, a C enum being an int.
    unsafe {
        Ok(Functions {
            create: CUBLAS.function(&found, c"cublasCreate_v2")?,
            destroy: CUBLAS.function(&found, c"cublasDestroy_v2")?,
            set_stream: CUBLAS.function(&found, c"cublasSetStream_v2")?,
            set_workspace: CUBLAS.function(&found, c"cublasSetWorkspace_v2")?,
            multiply: CUBLAS.function(&found, c"cublasSgemv_v2")?,
            found,
        })
    }
}

/// Name of the cuBLAS in use. Loads it, but does not initialise it.
///
/// # Errors
///
/// Why there is none.
pub fn blas_library() -> Result<&'static str, NoLibrary> {
    functions()
        .map(|functions| functions.found.name.as_str())
        .map_err(NoLibrary::clone)
}

/// A matrix in memory, column after column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Rows of the matrix.
    pub rows: u32,
    /// Columns of the matrix.
    pub columns: u32,
    /// Elements from one column to the next, at least as many as rows.
    pub leading: u32,
}

/// cuBLAS, queueing its work on one stream.
#[derive(Debug)]
pub struct Blas {
    handle: NonNull<c_void>,
    functions: &'static Functions,
    gpu: Gpu,
    _stream: Stream,
    workspace: DeviceMemory,
}

// SAFETY: the library's handle may change threads; not `Sync`, for it may serve one at a time only.
unsafe impl Send for Blas {}

impl Drop for Blas {
    fn drop(&mut self) {
        // A failure here is that of earlier work, which its waiter has seen.
        let _ = self.gpu.synchronize();
        // SAFETY: created by `new`, and nothing queued uses it any more.
        let _ = unsafe { (self.functions.destroy)(self.handle.as_ptr()) };
    }
}

impl Blas {
    pub(crate) fn new(gpu: &Gpu, stream: &Stream) -> Result<Self, BlasError> {
        let functions = functions().map_err(NoLibrary::clone)?;
        let workspace = gpu.allocate(WORKSPACE_BYTES)?;
        gpu.bind()?;
        let mut handle = null_mut();
        // SAFETY: a context is current and `handle` is a valid place for the handle.
        done("cublasCreate_v2", unsafe {
            (functions.create)(&mut handle)
        })?;
        let handle = NonNull::new(handle).ok_or(BlasError::Refused {
            call: "cublasCreate_v2",
            status: 1,
        })?;
        let blas = Self {
            handle,
            functions,
            gpu: gpu.clone(),
            _stream: stream.clone(),
            workspace,
        };
        // SAFETY: handle and stream are alive, and the stream is kept so.
        let status = unsafe { (functions.set_stream)(handle.as_ptr(), stream.raw().cast()) };
        done("cublasSetStream_v2", status)?;
        // After the stream, which takes any other workspace away.
        let place = std::ptr::with_exposed_provenance_mut(blas.workspace.pointer() as usize);
        // SAFETY: as many bytes of the GPU's memory, 256-byte aligned and kept as long as the handle.
        let status = unsafe { (functions.set_workspace)(handle.as_ptr(), place, WORKSPACE_BYTES) };
        done("cublasSetWorkspace_v2", status)?;
        Ok(blas)
    }

    /// Queues `y = M x`, of f32 numbers.
    ///
    /// # Errors
    ///
    /// Code 1 if a buffer is too small, there are more rows than the library counts, or the host is
    /// looking at a buffer ([`DeviceMemory::on_host`]); else the library's refusal.
    pub fn multiply(
        &self,
        shape: Columns,
        matrix: &DeviceMemory,
        x: &DeviceMemory,
        y: &DeviceMemory,
    ) -> Result<(), BlasError> {
        const CALL: &str = "cublasSgemv_v2";
        const NOT_TRANSPOSED: c_int = 0;
        let Columns {
            rows,
            columns,
            leading,
        } = shape;
        let counted = [rows, columns, leading].map(c_int::try_from);
        let (Ok(m), Ok(n), Ok(lda)) = (counted[0], counted[1], counted[2]) else {
            let reason = format!("multiplying a matrix of {rows} × {columns}, {leading} apart");
            return Err(DriverError::refused(CALL, reason).into());
        };
        let element = size_of::<f32>() as u64;
        let last = u64::from(leading) * u64::from(columns.saturating_sub(1));
        let needed = [last + u64::from(rows), columns.into(), rows.into()];
        let given = [matrix, x, y].map(|buffer| buffer.bytes() as u64);
        let fit = needed.iter().zip(given).all(|(&n, g)| n * element <= g);
        if !fit || leading < rows || rows == 0 || columns == 0 {
            let reason = format!(
                "multiplying a matrix of {rows} × {columns} numbers, columns {leading} apart, in \
                 buffers of {given:?} bytes"
            );
            return Err(DriverError::refused(CALL, reason).into());
        }
        for buffer in [matrix, x, y] {
            buffer.check_unseen(CALL)?;
        }
        self.gpu.bind()?;
        let place = |buffer: &DeviceMemory| {
            std::ptr::with_exposed_provenance_mut::<f32>(buffer.pointer() as usize)
        };
        // SAFETY: the handle is alive; the numbers lie within their buffers, as checked above; α and
        // β are read before the call returns.
        let status = unsafe {
            (self.functions.multiply)(
                self.handle.as_ptr(),
                NOT_TRANSPOSED,
                m,
                n,
                &1.0,
                place(matrix),
                lda,
                place(x),
                1,
                &0.0,
                place(y),
                1,
            )
        };
        done(CALL, status)
    }
}

fn done(call: &'static str, status: c_int) -> Result<(), BlasError> {
    match status {
        0 => Ok(()),
        status => Err(BlasError::Refused { call, status }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_by_name() {
        let refused = BlasError::Refused {
            call: "cublasSgemv_v2",
            status: 13,
        };
        let text = refused.to_string();
        assert!(text.contains("EXECUTION_FAILED (status 13)"), "{text}");
    }
}
