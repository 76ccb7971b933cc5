//! Finding the driver library, and what is said when there is none or when it refuses.

mod support;

use cuda_driver::{
    BLAS_VARIABLE, Gpu, NCCL_VARIABLE, NoGpu, NoLibrary, blas_library, devices, library,
    nccl_version, symbol,
};
use support::{Library, in_child};

#[test]
fn switched_off() {
    in_child("switched_off", Library::Named("none"), || {
        assert!(matches!(library(), Err(NoGpu::SwitchedOff)));
        let why = devices().unwrap_err().to_string();
        assert_eq!(why, "GPUs are switched off by ALLPAIRS_LIBCUDA=none");
        assert!(symbol(c"cuInit").is_none());
        // Nor has the loader mapped the driver because this program asked for it when linked.
        if let Ok(maps) = std::fs::read_to_string("/proc/self/maps") {
            assert!(!maps.contains("libcuda."), "{maps}");
        }
    });
}

#[test]
fn not_found() {
    in_child(
        "not_found",
        Library::Named("/nonexistent/libcuda.so.1"),
        || {
            let why = devices().unwrap_err();
            let text = why.to_string();
            assert!(text.contains("tried /nonexistent/libcuda.so.1: "), "{text}");
            assert_eq!(text.lines().count(), 1);
            let NoGpu::NoLibrary { tried } = why else {
                panic!("{why}")
            };
            assert_eq!(tried.len(), 1);

            let error = Gpu::open(0).unwrap_err();
            assert_eq!((error.call(), error.code()), ("cuInit", 303));
            assert!(
                error.to_string().contains("/nonexistent/libcuda.so.1"),
                "{error}"
            );
        },
    );
}

#[cfg(feature = "cust")]
#[test]
fn plain_cust_fails_with_an_error_that_can_be_printed() {
    use cuda_driver::cust::{CudaFlags, error::CudaError, init};
    in_child(
        "plain_cust_fails_with_an_error_that_can_be_printed",
        Library::Named("/nonexistent/libcuda.so.1"),
        || {
            let error = init(CudaFlags::empty()).unwrap_err();
            assert_eq!(error, CudaError::SharedObjectInitFailed);
            assert!(
                error.to_string().contains("no NVIDIA driver library"),
                "{error}"
            );
        },
    );
}

#[test]
fn every_usual_name_is_tried() {
    in_child(
        "every_usual_name_is_tried",
        Library::Named(""),
        || match library() {
            // This machine has a driver.
            Ok(name) => assert!(name.ends_with("libcuda.so.1"), "{name}"),
            Err(why) => {
                assert_eq!(why.to_string().lines().count(), 1);
                let NoGpu::NoLibrary { tried } = why else {
                    panic!("{why}")
                };
                assert_eq!(tried[0].name, "libcuda.so.1");
                assert!(tried.len() > 1);
            }
        },
    );
}

#[test]
fn found_by_its_usual_name() {
    in_child("found_by_its_usual_name", Library::FakeByUsualName, || {
        assert_eq!(library().unwrap(), "libcuda.so.1");
        let found = devices().unwrap();
        assert_eq!(found.len(), 2);
        let second = &found[1];
        assert_eq!(second.ordinal, 1);
        assert_eq!(second.name, "Fake GPU 1");
        assert_eq!(second.uuid, [0xf1; 16]);
        assert_eq!(second.compute_capability, (9, 0));
        assert_eq!(second.memory_bytes, 1 << 30);
        assert_eq!(second.warp_size, 32);
        assert_eq!(second.max_threads_per_block, 1024);
        assert_eq!(second.max_shared_bytes_per_block, 227 * 1024);
        assert_eq!(second.driver_version, (13, 1));
        // The fake driver answers 1000 and the attribute's number in CUDA's header.
        assert_eq!(second.sm_clock_khz, 1013);
        assert_eq!(second.sm_count, 1016);
        assert_eq!(second.memory_clock_khz, 1036);
        assert_eq!(second.memory_bus_bits, 1037);
        assert_eq!(second.l2_bytes, 1038);
        assert_eq!(second.max_threads_per_sm, 1039);
        assert_eq!(second.shared_bytes_per_sm, 1081);
        assert_eq!(second.registers_per_sm, 1082);
    });
}

#[test]
fn refused() {
    in_child("refused", Library::Fake(&[("FAKE_INIT", "803")]), || {
        let Err(NoGpu::Refused(error)) = devices() else {
            panic!("not refused")
        };
        assert_eq!((error.call(), error.code()), ("cuInit", 803));
        assert!(error.to_string().contains("fake text"), "{error}");
        assert!(error.to_string().contains("reboot"), "{error}");
    });
}

#[test]
fn no_device() {
    in_child("no_device", Library::Fake(&[("FAKE_INIT", "100")]), || {
        assert!(matches!(devices(), Err(NoGpu::NoDevice { .. })));
    });
}

#[test]
fn zero_devices() {
    in_child("zero_devices", Library::Fake(&[("FAKE_ZERO", "1")]), || {
        assert!(matches!(devices(), Err(NoGpu::NoDevice { .. })));
        assert_eq!(Gpu::open(0).unwrap_err().code(), 101);
    });
}

#[test]
fn a_code_newer_than_cust() {
    in_child(
        "a_code_newer_than_cust",
        Library::Fake(&[("FAKE_RETAIN", "226")]),
        || {
            let error = Gpu::open(1).unwrap_err();
            assert_eq!(
                (error.call(), error.code()),
                ("cuDevicePrimaryCtxRetain", 226)
            );
            assert_eq!(error.name(), "CUDA_ERROR_CONTAINED");
            assert!(
                error.to_string().contains("Invalid access, contained"),
                "{error}"
            );
            assert!(error.to_string().contains("opening GPU 1 of 2"), "{error}");
        },
    );
}

#[test]
fn a_function_that_the_driver_lacks() {
    in_child(
        "a_function_that_the_driver_lacks",
        Library::Fake(&[]),
        || {
            #[cfg(feature = "cust")]
            {
                use cuda_driver::cust::sys::{CUlimit::CU_LIMIT_STACK_SIZE, cuCtxGetLimit};
                let mut limit = 0;
                // SAFETY: `limit` is a valid place for an answer, which the fake driver never gives.
                let code = unsafe { cuCtxGetLimit(&mut limit, CU_LIMIT_STACK_SIZE) };
                assert_eq!(code as i32, 302);
            }
            assert!(symbol(c"cuCtxGetLimit").is_none());
            assert!(symbol(c"cuFuncGetParamInfo").is_some());
        },
    );
}

#[test]
fn without_a_library_for_linear_algebra() {
    in_child(
        "without_a_library_for_linear_algebra",
        Library::Fake(&[(BLAS_VARIABLE, "none")]),
        || {
            assert!(matches!(blas_library(), Err(NoLibrary::SwitchedOff { .. })));
            let gpu = Gpu::open(0).unwrap();
            let refusal = gpu.blas(&gpu.stream().unwrap()).unwrap_err().to_string();
            assert_eq!(refusal, "cuBLAS is switched off by ALLPAIRS_LIBCUBLAS=none");
        },
    );
}

#[test]
fn no_library_for_linear_algebra_is_found() {
    in_child(
        "no_library_for_linear_algebra_is_found",
        Library::Fake(&[(BLAS_VARIABLE, "/nonexistent/libcublas.so")]),
        || {
            let text = blas_library().unwrap_err().to_string();
            assert!(text.contains("/nonexistent/libcublas.so: "), "{text}");
            assert!(text.contains(BLAS_VARIABLE), "{text}");
            assert_eq!(text.lines().count(), 1);
        },
    );
}

#[test]
fn without_a_library_for_exchanges() {
    in_child(
        "without_a_library_for_exchanges",
        Library::Fake(&[(NCCL_VARIABLE, "none")]),
        || {
            let refusal = nccl_version().unwrap_err().to_string();
            assert_eq!(refusal, "NCCL is switched off by ALLPAIRS_LIBNCCL=none");
        },
    );
}

/// A library of another kind is told from one that is not there.
#[test]
fn another_library_is_no_cublas() {
    in_child(
        "another_library_is_no_cublas",
        Library::Fake(&[(BLAS_VARIABLE, "libc.so.6")]),
        || match blas_library() {
            Err(NoLibrary::NoFunction {
                library, function, ..
            }) => {
                assert_eq!((&library[..], function), ("libc.so.6", "cublasCreate_v2"));
            }
            other => panic!("{other:?}"),
        },
    );
}
