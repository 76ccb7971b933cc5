//! Modules from PTX, with the compiler's words when it fails, and their functions.

use std::ffi::{CString, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

use crate::cust;
use crate::cust::memory::CopyDestination;
use crate::device::Context;
use crate::error::{DriverError, check, check_cust};
use crate::shim;
use crate::sys::{self, CUfunction, CUfunction_attribute, CUjit_option, CUresult};

/// Room for what the driver's compiler says about a faulty module, bytes.
const LOG_BYTES: usize = 16 * 1024;

/// Compiled device code, loaded on one GPU.
#[derive(Debug, Clone)]
pub struct Module {
    loaded: Arc<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    name: String,
    // Before `context`, so that it is unloaded while the context lives.
    module: cust::module::Module,
    context: Arc<Context>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Queued kernels may still run this code, and `cust` unloads in whatever context is
        // current. A failure is that of earlier work, which its waiter has seen.
        let _ = self.context.synchronize();
    }
}

impl Module {
    pub(crate) fn load(
        context: &Arc<Context>,
        name: &str,
        ptx: &str,
    ) -> Result<Module, DriverError> {
        let doing = |error: DriverError| error.doing(format!("loading module `{name}`"));
        let Ok(image) = CString::new(ptx) else {
            let reason = format!("loading module `{name}`, whose PTX contains a NUL");
            return Err(DriverError::refused("cuModuleLoadDataEx", reason));
        };
        context.bind()?;
        let module = cust::module::Module::from_ptx_cstr(&image, &[]);
        let module = check_cust("cuModuleLoadDataEx", module)
            .map_err(|error| doing(error).with_log(failure_log(&image)))?;
        let (name, context) = (name.to_owned(), Arc::clone(context));
        Ok(Module {
            loaded: Arc::new(Loaded {
                name,
                module,
                context,
            }),
        })
    }

    /// The name given on loading.
    pub fn name(&self) -> &str {
        &self.loaded.name
    }

    /// Sets a variable of this module (`.const` or `.global`), of `N` bytes, between everything that
    /// was asked of the GPU before and everything that is asked of it after.
    ///
    /// # Errors
    ///
    /// Code 500 if the module has no such variable; else the first unreported failure of queued
    /// work.
    ///
    /// # Panics
    ///
    /// If the variable has another size.
    pub fn set_variable<const N: usize>(
        &self,
        name: &str,
        bytes: &[u8; N],
    ) -> Result<(), DriverError> {
        let doing = || format!("setting variable `{name}` of module `{}`", self.name());
        let Ok(symbol) = CString::new(name) else {
            return Err(DriverError::refused("cuModuleGetGlobal_v2", doing()));
        };
        // Waits on both sides: the copy is no stream's, and may be under way when it returns.
        self.loaded.context.synchronize()?;
        let variable = self.loaded.module.get_global::<[u8; N]>(&symbol);
        let mut variable =
            check_cust("cuModuleGetGlobal_v2", variable).map_err(|error| error.doing(doing()))?;
        check_cust("cuMemcpyHtoD_v2", variable.copy_from(bytes))
            .map_err(|error| error.doing(doing()))?;
        self.loaded.context.synchronize()
    }

    /// A kernel of this module, by its name in the PTX.
    ///
    /// # Errors
    ///
    /// Code 500 if the module has no such kernel.
    pub fn function(&self, name: &str) -> Result<Function, DriverError> {
        let doing = || format!("looking for kernel `{name}` in module `{}`", self.name());
        if name.contains('\0') {
            return Err(DriverError::refused("cuModuleGetFunction", doing()));
        }
        self.loaded.context.bind()?;
        let function = self.loaded.module.get_function(name);
        let raw = check_cust("cuModuleGetFunction", function)
            .map_err(|error| error.doing(doing()))?
            .to_raw();
        Ok(Function {
            raw,
            name: name.to_owned(),
            parameter_sizes: parameter_sizes(raw),
            module: Arc::clone(&self.loaded),
        })
    }
}

/// Loads a module that failed once more, for the compiler's log, which `cust` does not ask for.
fn failure_log(image: &CString) -> String {
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    // The driver takes the size by value in the place of a pointer.
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        without_provenance_mut(LOG_BYTES),
    ];
    let mut module = null_mut();
    // SAFETY: the image is NUL-terminated; each option has its value, and the buffer is as long as
    // stated and outlives the call.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if result == CUresult::CUDA_SUCCESS {
        // SAFETY: just loaded, and nothing refers to it.
        let _ = unsafe { sys::cuModuleUnload(module) };
        return "loading it a second time succeeded".to_owned();
    }
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
}

/// Resources of a kernel, as the driver's compiler allotted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// 32-bit registers a thread.
    pub registers: u32,
    /// Local memory a thread, bytes: spilled registers and stack. Zero in a good kernel.
    pub local_bytes: u32,
    /// Statically reserved shared memory a block, bytes.
    pub static_shared_bytes: u32,
    /// User's constant memory, bytes.
    pub constant_bytes: u32,
    /// Most threads a block can have, from the registers it needs and its `.maxntid`.
    pub max_threads_per_block: u32,
    /// Most dynamic shared memory a launch may ask for at present, bytes.
    pub max_dynamic_shared_bytes: u32,
    /// PTX version times ten (80 for 8.0) it was compiled from.
    pub ptx_version: u32,
    /// Compute capability times ten it was compiled for.
    pub binary_version: u32,
}

/// A kernel that can be launched with [`Gpu::launch`](crate::Gpu::launch).
#[derive(Debug, Clone)]
pub struct Function {
    raw: CUfunction,
    name: String,
    parameter_sizes: Option<Vec<usize>>,
    // Keeps the code loaded.
    module: Arc<Loaded>,
}

// SAFETY: the handle is of a loaded module, which is kept; the driver takes calls from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The kernel's name in the PTX.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The driver's handle, for calls that this crate lacks; valid while the function lives.
    pub fn raw(&self) -> CUfunction {
        self.raw
    }

    /// Size of each of the kernel's parameters, bytes; `None` if the driver is older than CUDA
    /// 12.4 and cannot tell.
    pub fn parameter_sizes(&self) -> Option<&[usize]> {
        self.parameter_sizes.as_deref()
    }

    /// Resources of this kernel.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn attributes(&self) -> Result<FunctionAttributes, DriverError> {
        use CUfunction_attribute::*;
        self.module.context.bind()?;
        let get = |which| self.attribute(which);
        Ok(FunctionAttributes {
            registers: get(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            constant_bytes: get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            max_threads_per_block: get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_dynamic_shared_bytes: get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
            ptx_version: get(CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binary_version: get(CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        })
    }

    fn attribute(&self, which: CUfunction_attribute) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: the handle is alive and `value` is a valid place for the answer.
        let result = unsafe { sys::cuFuncGetAttribute(&mut value, which, self.raw) };
        check("cuFuncGetAttribute", result)
            .map_err(|error| error.doing(format!("asking kernel `{}` for {which:?}", self.name)))?;
        // All attributes asked for here are counts and sizes.
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Allows launches with up to `bytes` of dynamic shared memory. Without it the limit is what
    /// 48 KiB leave beside the static shared memory.
    ///
    /// # Errors
    ///
    /// Code 1 if with the static shared memory it exceeds
    /// [`max_shared_bytes_per_block`](crate::DeviceInfo::max_shared_bytes_per_block).
    pub fn set_max_dynamic_shared(&self, bytes: u32) -> Result<(), DriverError> {
        let most = self.module.context.info().max_shared_bytes_per_block;
        let doing = || {
            let name = &self.name;
            format!("allowing kernel `{name}` {bytes} bytes of shared memory (a block has {most})")
        };
        let value = c_int::try_from(bytes)
            .map_err(|_| DriverError::refused("cuFuncSetAttribute", doing()))?;
        self.module.context.bind()?;
        let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the handle is alive.
        let result = unsafe { sys::cuFuncSetAttribute(self.raw, which, value) };
        check("cuFuncSetAttribute", result).map_err(|error| error.doing(doing()))
    }
}

/// Asks the driver for the parameters of a kernel, with a function of CUDA 12.4.
fn parameter_sizes(function: CUfunction) -> Option<Vec<usize>> {
    type ParamInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> c_int;
    let address = shim::symbol(c"cuFuncGetParamInfo")?;
    // SAFETY: CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *).
    let param_info = unsafe { std::mem::transmute::<*mut c_void, ParamInfo>(address) };
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the handle is alive and both places are valid.
        match unsafe { param_info(function, sizes.len(), &mut offset, &mut size) } {
            0 => sizes.push(size),
            // This is how the driver says that there are no more. compute-sanitizer reports it as
            // an API error, once for each kernel; `--report-api-errors no` hides that.
            1 => return Some(sizes),
            _ => return None,
        }
    }
}
