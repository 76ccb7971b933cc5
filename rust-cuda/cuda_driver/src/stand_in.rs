//! Stand-in for `cust` in builds without it: the names that this crate uses, with the same calls of the driver.
//!
//! The published build helper of `cust` asks for an installed CUDA toolkit, and this workspace's replacement
//! of it does not travel to a registry. So packages from a registry do without `cust`, unless the feature
//! of its name is asked for.

use std::ffi::c_int;

use crate::sys::{self, CUresult};

/// A call was refused; `shim::last_error_code` tells why.
#[derive(Debug)]
pub(crate) struct CudaError;

pub(crate) mod error {
    pub(crate) type CudaResult<T> = Result<T, super::CudaError>;
}

use error::CudaResult;

fn done(result: CUresult) -> CudaResult<()> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        _ => Err(CudaError),
    }
}

/// The driver knows none.
pub(crate) struct CudaFlags;

impl CudaFlags {
    pub(crate) fn empty() -> Self {
        Self
    }
}

pub(crate) fn init(_: CudaFlags) -> CudaResult<()> {
    // SAFETY: takes a number.
    done(unsafe { sys::cuInit(0) })
}

/// As the driver counts: 1000 · major + 10 · minor.
pub(crate) struct CudaApiVersion(c_int);

impl CudaApiVersion {
    pub(crate) fn get() -> CudaResult<Self> {
        let mut version = 0;
        // SAFETY: `version` is a valid place for the answer.
        done(unsafe { sys::cuDriverGetVersion(&mut version) })?;
        Ok(Self(version))
    }

    pub(crate) fn major(&self) -> i32 {
        self.0 / 1000
    }

    pub(crate) fn minor(&self) -> i32 {
        self.0 % 1000 / 10
    }
}

pub(crate) mod device {
    use std::ffi::CStr;

    use super::{CudaError, CudaResult, done, sys};

    #[derive(Clone, Copy)]
    pub(crate) struct Device(sys::CUdevice);

    impl Device {
        pub(crate) fn num_devices() -> CudaResult<u32> {
            let mut count = 0;
            // SAFETY: `count` is a valid place for the answer.
            done(unsafe { sys::cuDeviceGetCount(&mut count) })?;
            Ok(u32::try_from(count).unwrap_or(0))
        }

        pub(crate) fn get_device(ordinal: u32) -> CudaResult<Self> {
            let mut device = 0;
            // A number that is none becomes -1, which the driver refuses.
            let ordinal = i32::try_from(ordinal).unwrap_or(-1);
            // SAFETY: `device` is a valid place for the answer.
            done(unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
            Ok(Self(device))
        }

        pub(crate) fn name(self) -> CudaResult<String> {
            let mut name = [0_u8; 128];
            // SAFETY: as many bytes as stated.
            let told =
                unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), 128, self.as_raw()) };
            done(told)?;
            let name = CStr::from_bytes_until_nul(&name).map_err(|_| CudaError)?;
            Ok(name.to_string_lossy().into_owned())
        }

        pub(crate) fn total_memory(self) -> CudaResult<usize> {
            let mut bytes = 0;
            // SAFETY: `bytes` is a valid place for the answer.
            done(unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, self.0) })?;
            Ok(bytes)
        }

        pub(crate) fn as_raw(self) -> sys::CUdevice {
            self.0
        }
    }
}

pub(crate) mod context {
    use std::ptr::null_mut;

    use super::device::Device;
    use super::{CudaResult, done, sys};

    /// A primary context that is retained.
    #[derive(Debug)]
    pub(crate) struct Context {
        handle: sys::CUcontext,
        device: sys::CUdevice,
    }

    // SAFETY: the driver takes calls from any thread.
    unsafe impl Send for Context {}
    // SAFETY: as above.
    unsafe impl Sync for Context {}

    impl Context {
        pub(crate) fn new(device: Device) -> CudaResult<Self> {
            let (mut handle, device) = (null_mut(), device.as_raw());
            // SAFETY: the device exists and `handle` is a valid place for the answer.
            done(unsafe { sys::cuDevicePrimaryCtxRetain(&mut handle, device) })?;
            let context = Self { handle, device };
            // SAFETY: just retained.
            done(unsafe { sys::cuCtxSetCurrent(handle) })?;
            Ok(context)
        }

        pub(crate) fn as_raw(&self) -> sys::CUcontext {
            self.handle
        }
    }

    impl Drop for Context {
        fn drop(&mut self) {
            // A failure here was made by earlier work, and its waiter has seen it.
            // SAFETY: retained by `new`.
            let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
        }
    }
}

pub(crate) mod memory {
    use super::CudaResult;

    pub(crate) trait CopyDestination<T> {
        fn copy_from(&mut self, value: &T) -> CudaResult<()>;
    }
}

pub(crate) mod module {
    use std::ffi::{CStr, CString};
    use std::marker::PhantomData;
    use std::ptr::null_mut;

    use super::memory::CopyDestination;
    use super::{CudaError, CudaResult, done, sys};

    #[derive(Debug)]
    pub(crate) struct Module(sys::CUmodule);

    // SAFETY: the driver takes calls from any thread.
    unsafe impl Send for Module {}
    // SAFETY: as above.
    unsafe impl Sync for Module {}

    impl Module {
        /// Compiles and loads PTX in the current context. There are no options.
        pub(crate) fn from_ptx_cstr(ptx: &CStr, _: &[()]) -> CudaResult<Self> {
            let mut module = null_mut();
            let (image, none, no_values) = (ptx.as_ptr().cast(), null_mut(), null_mut());
            // SAFETY: the image is NUL-terminated and `module` is a valid place for the handle.
            done(unsafe { sys::cuModuleLoadDataEx(&mut module, image, 0, none, no_values) })?;
            Ok(Self(module))
        }

        /// # Panics
        /// If the variable has another size.
        pub(crate) fn get_global<T>(&self, name: &CStr) -> CudaResult<Symbol<T>> {
            let (mut pointer, mut bytes) = (0, 0);
            // SAFETY: the handle is alive, the name ends in a NUL and both places are valid.
            done(unsafe {
                sys::cuModuleGetGlobal_v2(&mut pointer, &mut bytes, self.0, name.as_ptr())
            })?;
            assert_eq!(bytes, size_of::<T>());
            Ok(Symbol(pointer, PhantomData))
        }

        pub(crate) fn get_function(&self, name: &str) -> CudaResult<Function> {
            let name = CString::new(name).map_err(|_| CudaError)?;
            let mut function = null_mut();
            // SAFETY: the handle is alive, the name ends in a NUL and `function` is a valid place.
            done(unsafe { sys::cuModuleGetFunction(&mut function, self.0, name.as_ptr()) })?;
            Ok(Function(function))
        }
    }

    impl Drop for Module {
        fn drop(&mut self) {
            // A failure here was made by earlier work, and its waiter has seen it.
            // SAFETY: loaded by `from_ptx_cstr`, and the owner has waited for its kernels.
            let _ = unsafe { sys::cuModuleUnload(self.0) };
        }
    }

    pub(crate) struct Function(sys::CUfunction);

    impl Function {
        pub(crate) fn to_raw(&self) -> sys::CUfunction {
            self.0
        }
    }

    /// A variable of a module, as large as `T`.
    pub(crate) struct Symbol<T>(sys::CUdeviceptr, PhantomData<T>);

    impl<const N: usize> CopyDestination<[u8; N]> for Symbol<[u8; N]> {
        fn copy_from(&mut self, value: &[u8; N]) -> CudaResult<()> {
            // SAFETY: variable and value have the same size.
            done(unsafe { sys::cuMemcpyHtoD_v2(self.0, value.as_ptr().cast(), N) })
        }
    }
}
