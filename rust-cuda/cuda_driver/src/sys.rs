//! The driver's functions, types and numbers, by the names of CUDA's header.
//!
//! With the feature `cust` the types are taken from `cust_raw`, and the numbers here are compared with its numbers:
//! a wrong one does not compile. Without it the types are defined here, and `shim` has the functions.

#[cfg(feature = "cust")]
pub(crate) use cust_raw::*;
#[cfg(not(feature = "cust"))]
pub(crate) use own::*;

macro_rules! numbers {
    ($( enum $name:ident { $($variant:ident = $number:literal)* } )* $( const $constant:ident = $value:literal; )*) => {
        #[cfg(feature = "cust")]
        const _: () = {
            $($( assert!(cust_raw::$name::$variant as i32 == $number); )*)*
            $( assert!(cust_raw::$constant == $value); )*
        };
        #[cfg(not(feature = "cust"))]
        #[allow(non_camel_case_types)]
        mod own {
            use std::ffi::{c_char, c_int, c_ulonglong, c_void};

            pub(crate) use crate::shim::functions::*;

            $(
                #[derive(Clone, Copy, Debug, PartialEq, Eq)]
                #[repr(i32)]
                pub(crate) enum $name { $($variant = $number),* }
            )*
            $( pub(crate) const $constant: u32 = $value; )*

            pub(crate) type CUdevice = c_int;
            pub(crate) type CUdeviceptr = c_ulonglong;
            // Handles. With `cust` each is a type that fits no other.
            pub(crate) type CUcontext = *mut c_void;
            pub(crate) type CUevent = *mut c_void;
            pub(crate) type CUfunction = *mut c_void;
            pub(crate) type CUgraph = *mut c_void;
            pub(crate) type CUgraphExec = *mut c_void;
            pub(crate) type CUmodule = *mut c_void;
            pub(crate) type CUstream = *mut c_void;

            #[repr(C)]
            pub(crate) struct CUuuid {
                pub(crate) bytes: [c_char; 16],
            }
        }
    };
}

numbers! {
    enum CUresult {
        CUDA_SUCCESS = 0
        CUDA_ERROR_INVALID_VALUE = 1
        CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302
        CUDA_ERROR_SHARED_OBJECT_INIT_FAILED = 303
        CUDA_ERROR_NOT_READY = 600
        CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704
        CUDA_ERROR_TOO_MANY_PEERS = 711
        CUDA_ERROR_UNKNOWN = 999
    }
    enum CUdevice_attribute {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1
        CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    }
    enum CUdevice_P2PAttribute {
        CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1
        CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2
        CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3
    }
    enum CUfunction_attribute {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4
        CU_FUNC_ATTRIBUTE_PTX_VERSION = 5
        CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    }
    enum CUjit_option {
        CU_JIT_ERROR_LOG_BUFFER = 5
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
    }
    enum CUevent_flags {
        CU_EVENT_DEFAULT = 0
        CU_EVENT_DISABLE_TIMING = 2
    }
    enum CUstream_flags {
        CU_STREAM_NON_BLOCKING = 1
    }
    enum CUstreamCaptureMode {
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
    }
    const CU_MEMHOSTALLOC_PORTABLE = 1;
    const CU_MEMHOSTALLOC_DEVICEMAP = 2;
}
