//! All that a GPU is used for, right and wrong: on a fake driver, and on a GPU where there is one.

mod support;

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use cuda_driver::{
    BlasError, Columns, CommunicatorId, DriverError, Gpu, Module, NcclError, NcclVersion, Piece,
    blas_library, devices, keeping_context, library, link, nccl_version, symbol,
};
use support::{Library, fake_number, in_child};

/// Adds one to each of `count` numbers.
const ADD_ONE: &str = "
.version 6.4
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 numbers, .param .u32 count)
{
    .reg .pred %outside;
    .reg .b32 %thread, %threads, %block, %count, %number;
    .reg .b64 %offset, %address;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %thread, %block, %threads, %thread;
    ld.param.u32 %count, [count];
    setp.ge.u32 %outside, %thread, %count;
    @%outside ret;
    ld.param.u64 %address, [numbers];
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %address, %address, %offset;
    ld.global.u32 %number, [%address];
    add.u32 %number, %number, 1;
    st.global.u32 [%address], %number;
    ret;
}
";

#[test]
fn on_the_fake_driver() {
    in_child("on_the_fake_driver", Library::Fake(&[]), || {
        exercise().unwrap();
        assert!(blas_library().unwrap().ends_with("libcuda.so.1"));
        products().unwrap();
        assert_eq!(nccl_version().unwrap().to_string(), "2.27.3");
        assert_eq!(NcclVersion(2804).to_string(), "2.8.4");
        exchanges().unwrap();
        assert_eq!(
            fake_number(c"fake_faults"),
            0,
            "freed or unloaded while in use"
        );
        assert_eq!(fake_number(c"fake_alive"), 0, "never freed");
    });
}

/// The driver refuses every wait while work is recorded, also for streams that do theirs meanwhile:
/// on an H100 with driver 580 by code 900, which the fake driver has from there.
#[test]
fn what_cannot_be_waited_for_is_not_touched() {
    in_child(
        "what_cannot_be_waited_for_is_not_touched",
        Library::Fake(&[]),
        || {
            let alive = fake_number(c"fake_alive");
            copies_while_recording().unwrap();
            assert_eq!(fake_number(c"fake_faults"), 0, "freed while in use");
            let leaked = fake_number(c"fake_alive") - alive;
            assert_eq!(leaked, 3, "pinned, mapped and device memory");
        },
    );
}

fn copies_while_recording() -> Result<(), DriverError> {
    let gpu = Gpu::open(0)?;
    let (recorded, other) = (gpu.stream()?, gpu.stream()?);
    let memory = gpu.allocate(4)?;
    let mut pinned = gpu.pinned::<u8>(4)?;
    memory.fill(0, 4, 7, &other)?;
    memory.download_async(0, &mut pinned, 0..4, &other)?;
    let wait = recorded.record(|| {
        // Twice: a wait that failed is not to be taken for one that is done.
        assert_eq!(pinned.slice().unwrap_err().code(), 900);
        assert_eq!(pinned.slice_mut().unwrap_err().code(), 900);
        Ok::<_, DriverError>(())
    });
    assert_eq!(wait.unwrap_err().code(), 901);
    assert_eq!(pinned.slice()?, [7; 4], "the copy is waited for again");

    // A copy that is itself recorded holds nothing up: it is not done.
    drop(recorded.record(|| memory.download_async(0, &mut pinned, 0..4, &recorded))?);
    assert_eq!(pinned.slice_mut()?, [7; 4]);

    // Nor is anything queued whose end could not be waited for, although the slice ends before.
    let mut bytes = [1_u8; 4];
    drop(recorded.record(|| {
        assert_eq!(memory.upload(0, &bytes, &other).unwrap_err().code(), 1);
        let back = memory.download(0, &mut bytes, &other);
        assert_eq!(back.unwrap_err().code(), 1);
        Ok::<_, DriverError>(())
    })?);
    other.synchronize()?;
    assert_eq!(bytes, [1; 4]);

    // What cannot be waited for is leaked.
    let mapped = gpu.mapped(4)?;
    mapped.fill(0, 4, 1, &other)?;
    memory.download_async(0, &mut pinned, 0..4, &other)?;
    let dropped = recorded.record(|| {
        drop((pinned, mapped, memory));
        Ok::<_, DriverError>(())
    });
    assert_eq!(dropped.unwrap_err().code(), 901);
    other.synchronize()
}

#[test]
fn a_panic_ends_the_recording() {
    in_child("a_panic_ends_the_recording", Library::Fake(&[]), || {
        let gpu = Gpu::open(0).unwrap();
        let stream = gpu.stream().unwrap();
        let alive = fake_number(c"fake_alive");
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            stream.record(|| -> Result<(), DriverError> { panic!("planted") })
        }));
        assert!(unwound.is_err());
        assert_eq!(fake_number(c"fake_recording"), 0);
        assert_eq!(fake_number(c"fake_alive"), alive, "a graph that nobody has");
        let memory = gpu.allocate(1).unwrap();
        memory.upload(0, &[1_u8], &stream).unwrap(); // and waits are allowed again
        drop(stream.record(|| memory.fill(0, 1, 2, &stream)).unwrap());
    });
}

#[test]
fn on_the_gpu() {
    in_child("on_the_gpu", Library::Own, || match devices() {
        Err(why) => println!("SKIPPED: {why}"),
        Ok(found) => {
            println!("{}: {found:#?}", library().unwrap());
            exercise().unwrap();
            graphs().unwrap();
            match blas_library() {
                Err(why) => println!("SKIPPED: {why}"),
                Ok(_) => products().unwrap(),
            }
            match nccl_version() {
                Err(why) => println!("SKIPPED: {why}"),
                Ok(_) => exchanges().unwrap(),
            }
        }
    });
}

/// Recorded work is not done until it is replayed, and then as often as it is. (The fake driver
/// replays none.)
fn graphs() -> Result<(), DriverError> {
    let gpu = Gpu::open(0)?;
    let kernel = gpu.load_ptx("numbers", ADD_ONE)?.function("add_one")?;
    let stream = gpu.stream()?;
    let mut numbers = [10_u32, 20, 30];
    let memory = gpu.allocate(size_of_val(&numbers))?;
    memory.upload(0, &numbers, &stream)?;
    let (mut pointer, mut count) = (memory.pointer(), numbers.len() as u32);
    let mut args = [(&raw mut pointer).cast::<c_void>(), (&raw mut count).cast()];
    let mut add_one = || {
        // SAFETY: the kernel takes the address of `count` numbers, and `count`.
        unsafe { gpu.launch(&kernel, [1; 3], [32, 1, 1], 0, &stream, &mut args) }
    };
    add_one()?;
    let graph = stream.record(|| add_one().and_then(|()| add_one()))?;
    memory.download(0, &mut numbers, &stream)?;
    assert_eq!(numbers, [11, 21, 31]);
    for _ in 0..5 {
        // SAFETY: memory and kernel are still there.
        unsafe { stream.replay(&graph)? };
    }
    memory.download(0, &mut numbers, &stream)?;
    assert_eq!(numbers, [21, 31, 41]);

    let waits = stream.record(|| stream.synchronize());
    assert!(
        waits.unwrap_err().code() >= 900,
        "waiting cannot be recorded"
    );
    stream.synchronize() // and the stream is of use again
}

/// A communicator of one member, which sends to itself.
fn exchanges() -> Result<(), NcclError> {
    let gpu = Gpu::open(0)?;
    let stream = gpu.stream()?;
    let members = gpu.communicator(&CommunicatorId::new()?, 0, 1)?;
    let [from, to] = [8, 8].map(|bytes| gpu.allocate(bytes).unwrap());
    from.upload(0, &[1_u8, 2, 3, 4, 5, 6, 7, 8], &stream)?;
    to.fill(0, 8, 0, &stream)?;
    let piece = |memory, bytes| Piece {
        member: 0,
        memory,
        bytes,
    };
    let sent = [piece(&from, 0..3), piece(&from, 6..8), piece(&from, 4..4)];
    let received = [piece(&to, 1..4), piece(&to, 4..6)];
    members.exchange(&sent, &received, &stream)?;
    members.wait(&stream)?;
    assert!(stream.is_done()?);
    let mut bytes = [0_u8; 8];
    to.download(0, &mut bytes, &stream)?;
    assert_eq!(bytes, [0, 1, 2, 3, 7, 8, 0, 0]);
    let beyond = members.exchange(&[piece(&from, 6..9)], &[], &stream);
    let error = beyond.unwrap_err().to_string();
    assert!(error.contains("3 bytes at byte 6 of 8"), "{error}");
    members.exchange(&[], &[], &stream)
}

/// A failure in the background is told by the next exchange, and what a group lacks by its end.
#[test]
fn exchanges_that_fail_are_told() {
    fn failed() -> String {
        let gpu = Gpu::open(0).unwrap();
        let stream = gpu.stream().unwrap();
        let members = gpu
            .communicator(&CommunicatorId::new().unwrap(), 0, 1)
            .unwrap();
        let memory = gpu.allocate(4).unwrap();
        let sent = [Piece {
            member: 0,
            memory: &memory,
            bytes: 0..4,
        }];
        members
            .exchange(&sent, &[], &stream)
            .unwrap_err()
            .to_string()
    }
    in_child("exchanges_that_fail_are_told", Library::Fake(&[]), || {
        let text = failed();
        assert!(
            text.starts_with("ncclGroupEnd: invalid usage (code 5)"),
            "{text}"
        );
        assert!(text.contains("ALLPAIRS_LIBNCCL=none"), "{text}");
        // SAFETY: this process has no other threads that read it.
        unsafe { std::env::set_var("FAKE_NCCL", "6") };
        let text = failed();
        assert!(text.starts_with("an exchange before: "), "{text}");
    });
}

/// The fake driver never ends what is queued then.
#[test]
fn an_exchange_that_fails_is_not_waited_for() {
    fn waited() -> Result<(), NcclError> {
        let gpu = Gpu::open(0)?;
        let stream = gpu.stream()?;
        let members = gpu.communicator(&CommunicatorId::new()?, 0, 1)?;
        let memory = gpu.allocate(8)?;
        let piece = |bytes| Piece {
            member: 0,
            memory: &memory,
            bytes,
        };
        members.exchange(&[piece(0..4)], &[piece(4..8)], &stream)?;
        // SAFETY: this process has no other threads that read it.
        unsafe { std::env::set_var("FAKE_NCCL", "6") };
        let waited = members.wait(&stream);
        stream.synchronize()?; // which ends it on the fake driver alone
        waited
    }
    in_child(
        "an_exchange_that_fails_is_not_waited_for",
        Library::Fake(&[("FAKE_STUCK", "1")]),
        || {
            let error = waited().unwrap_err().to_string();
            assert!(error.starts_with("an exchange: "), "{error}");
        },
    );
}

/// A matrix of three rows, which a fourth number follows in each of its two columns.
fn products() -> Result<(), BlasError> {
    let gpu = Gpu::open(0)?;
    let stream = gpu.stream()?;
    let blas = gpu.blas(&stream)?;
    let [matrix, x, y] = [32, 8, 12].map(|bytes| gpu.allocate(bytes).unwrap());
    matrix.upload(
        0,
        &[1_f32, 2.0, 3.0, f32::NAN, 4.0, 5.0, 6.0, f32::NAN],
        &stream,
    )?;
    x.upload(0, &[1_f32, 10.0], &stream)?;
    y.fill(0, 12, 0xff, &stream)?; // which is not read
    let shape = Columns {
        rows: 3,
        columns: 2,
        leading: 4,
    };
    blas.multiply(shape, &matrix, &x, &y)?;
    let mut product = [0_f32; 3];
    y.download(0, &mut product, &stream)?;
    assert_eq!(product, [41.0, 52.0, 63.0]);

    let mapped = gpu.mapped(12)?;
    let seen = mapped.on_host(|_| blas.multiply(shape, &matrix, &x, &mapped))?;
    let error = seen.unwrap().unwrap_err();
    assert!(error.to_string().contains("host is looking at"), "{error}");

    let refused = |shape| {
        blas.multiply(shape, &matrix, &x, &y)
            .unwrap_err()
            .to_string()
    };
    for wrong in [
        Columns { rows: 4, ..shape },
        Columns {
            columns: 3,
            ..shape
        },
        Columns {
            leading: 2,
            ..shape
        },
        Columns { rows: 0, ..shape },
        Columns {
            columns: 0,
            ..shape
        },
        Columns {
            leading: u32::MAX,
            ..shape
        },
    ] {
        assert!(
            refused(wrong).contains("multiplying a matrix of"),
            "{wrong:?}"
        );
    }
    Ok(())
}

/// Memory of the host is the GPU's, too, without a copy.
fn mapped(gpu: &Gpu, module: &Module) -> Result<(), DriverError> {
    let kernel = module.function("add_one")?;
    let stream = gpu.stream()?;
    let memory = gpu.mapped(12)?;
    assert_eq!(memory.on_host(|bytes| bytes.to_vec())?, Some(vec![0; 12]));
    memory.fill(0, 12, 0, &stream)?;
    memory.upload(4, &[7_u32], &stream)?;
    let (mut pointer, mut count) = (memory.pointer(), 3_u32);
    let mut args = [(&raw mut pointer).cast::<c_void>(), (&raw mut count).cast()];
    for _ in 0..2 {
        // SAFETY: the kernel takes the address of `count` numbers, and `count`.
        unsafe { gpu.launch(&kernel, [1; 3], [32, 1, 1], 0, &stream, &mut args)? };
        memory.on_host(|bytes| {
            bytes[0] += 10;
            assert_eq!(
                memory.on_host(|_| ()).unwrap_err().code(),
                1,
                "twice at a time"
            );
            // Nothing can be queued that would change or read the bytes beside this slice.
            let mut pinned = gpu.pinned::<u8>(12).unwrap();
            for refused in [
                memory.fill(0, 12, 0xff, &stream),
                memory.upload(0, &[0xff_u8; 12], &stream),
                memory.download(0, &mut [0_u8; 12], &stream),
                memory.upload_async(0, &pinned, 0..12, &stream),
                memory.download_async(0, &mut pinned, 0..12, &stream),
            ] {
                let error = refused.unwrap_err();
                assert!(error.to_string().contains("host is looking at"), "{error}");
            }
        })?;
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| memory.on_host(|_| panic!("planted"))));
    assert!(panicked.is_err());
    let mut numbers = [0_u32; 3];
    memory.download(0, &mut numbers, &stream)?;
    assert_eq!(numbers, [22, 9, 2]);

    assert_eq!(gpu.allocate(4)?.on_host(|_| ())?, None);
    let nothing = gpu.mapped(0)?;
    assert_eq!((nothing.pointer(), nothing.on_host(|_| ())?), (0, None));
    assert_eq!(gpu.mapped(1 << 50).unwrap_err().code(), 2);
    Ok(())
}

fn exercise() -> Result<(), DriverError> {
    let absent = devices().unwrap().len() as u32;
    assert!(Gpu::open(absent).is_err());
    let gpu = Gpu::open(0)?;
    assert_eq!(*gpu.info(), devices().unwrap()[0]);
    let module = modules(&gpu)?;
    functions(&gpu, &module)?;
    launches(&gpu, &module)?;
    memory(&gpu)?;
    mapped(&gpu, &module)?;
    nothing(&gpu)?;
    streams(&gpu)?;
    between_gpus(&gpu)?;
    contexts(&gpu)?;
    dropped_in_use(gpu, module)
}

/// From one GPU to the other where there are two, else from the one to itself.
fn between_gpus(gpu: &Gpu) -> Result<(), DriverError> {
    let last = devices().unwrap().len() as u32 - 1;
    let other = Gpu::open(last)?;
    assert!(gpu.reach(gpu)?, "itself");
    assert!(link(0, 0).is_err() && link(0, last + 1).is_err());
    if last > 0 {
        let direct = link(0, last)?.direct;
        assert_eq!(gpu.reach(&other)?, direct);
        assert_eq!(gpu.reach(&other)?, direct, "once more");
        other.reach(gpu)?;
    }
    let (here, there) = (gpu.stream()?, other.stream()?);
    let (source, target) = (gpu.allocate(8)?, other.allocate(8)?);
    source.upload(0, &[1_u8, 2, 3, 4, 5, 6, 7, 8], &here)?;
    target.fill(0, 8, 0, &there)?;
    target.copy_from(1, &source, 4..8, &there)?;
    target.copy_from(8, &source, 8..8, &there)?;
    let mut bytes = [0_u8; 8];
    target.download(0, &mut bytes, &there)?;
    assert_eq!(bytes, [0, 5, 6, 7, 8, 0, 0, 0]);
    #[expect(clippy::reversed_empty_ranges)]
    for (offset, range) in [(5, 4..8), (0, 5..9), (9, 0..0), (0, 6..5)] {
        let refused = target.copy_from(offset, &source, range, &there);
        assert_eq!(refused.unwrap_err().code(), 1);
    }
    if last > 0 {
        let refused = target.copy_from(0, &source, 0..8, &here).unwrap_err();
        assert!(refused.to_string().contains("another GPU"), "{refused}");
    }
    // Freed while another GPU is still to read it.
    target.copy_from(0, &source, 0..8, &there)?;
    drop(source);
    target.download(0, &mut bytes, &there)?;
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    let twin = other.allocate(4)?;
    twin.copy_from(0, &target, 2..6, &there)?;
    twin.download(0, &mut bytes[..4], &there)?;
    assert_eq!(bytes[..4], [3, 4, 5, 6]);
    Ok(())
}

/// Another library's choice of a context is left alone: here that there is none.
fn contexts(gpu: &Gpu) -> Result<(), DriverError> {
    type Get = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
    type Set = unsafe extern "C" fn(*mut c_void) -> c_int;
    let [get, set] = [c"cuCtxGetCurrent", c"cuCtxSetCurrent"].map(|name| symbol(name).unwrap());
    let current = || {
        let mut context = null_mut();
        // SAFETY: CUresult cuCtxGetCurrent(CUcontext *), and `context` is a valid place for the answer.
        unsafe { transmute::<*mut c_void, Get>(get)(&mut context) };
        context
    };
    // SAFETY: CUresult cuCtxSetCurrent(CUcontext), and no context is a valid choice.
    let leave = || unsafe { transmute::<*mut c_void, Set>(set)(null_mut()) };
    leave();
    keeping_context(|| gpu.synchronize())?;
    assert!(current().is_null());
    gpu.synchronize()?;
    let ours = current();
    assert!(!ours.is_null());
    let unwound = catch_unwind(|| {
        keeping_context(|| {
            leave();
            panic!("planted")
        })
    });
    assert!(unwound.is_err());
    assert_eq!(current(), ours);
    Ok(())
}

fn modules(gpu: &Gpu) -> Result<Module, DriverError> {
    let error = gpu.load_ptx("text", "this is no PTX").unwrap_err();
    assert_eq!((error.call(), error.code()), ("cuModuleLoadDataEx", 200));

    let broken = ADD_ONE.replace("mad.lo.u32", "bogus.u32");
    let error = gpu.load_ptx("broken", &broken).unwrap_err();
    assert_eq!((error.call(), error.code()), ("cuModuleLoadDataEx", 218));
    assert!(error.log().contains("ptxas"), "{error}");
    assert!(error.to_string().contains("`broken`"), "{error}");

    let newer = ADD_ONE.replace(".version 6.4", ".version 99.0");
    let error = gpu.load_ptx("newer", &newer).unwrap_err();
    assert_eq!(error.code(), 222);
    assert!(!error.log().is_empty());
    assert!(error.to_string().contains("update the driver"), "{error}");

    assert_eq!(gpu.load_ptx("nul", "\0").unwrap_err().code(), 1);

    let module = gpu.load_ptx("add_one", ADD_ONE)?;
    let error = module.function("add_two").unwrap_err();
    assert_eq!(error.code(), 500);
    assert!(
        error
            .to_string()
            .contains("kernel `add_two` in module `add_one`"),
        "{error}"
    );
    assert_eq!(module.function("add\0").unwrap_err().code(), 1);
    Ok(module)
}

fn functions(gpu: &Gpu, module: &Module) -> Result<(), DriverError> {
    let kernel = module.function("add_one")?;
    let attributes = kernel.attributes()?;
    assert!(attributes.registers > 0);
    assert_eq!(attributes.local_bytes, 0);
    assert!(attributes.max_threads_per_block > 0);
    if let Some(sizes) = kernel.parameter_sizes() {
        assert_eq!(sizes, [8, 4]);
    }

    let most = gpu.info().max_shared_bytes_per_block;
    assert!(most > 48 * 1024);
    kernel.set_max_dynamic_shared(most)?;
    assert_eq!(kernel.attributes()?.max_dynamic_shared_bytes, most);
    let error = kernel.set_max_dynamic_shared(most + 1).unwrap_err();
    assert_eq!(error.code(), 1);
    assert!(error.to_string().contains(&most.to_string()), "{error}");
    assert_eq!(
        kernel.set_max_dynamic_shared(u32::MAX).unwrap_err().code(),
        1
    );
    Ok(())
}

fn launches(gpu: &Gpu, module: &Module) -> Result<(), DriverError> {
    const COUNT: u32 = 1000;
    let kernel = module.function("add_one")?;
    let most = gpu.info().max_shared_bytes_per_block;
    kernel.set_max_dynamic_shared(most)?;
    let stream = gpu.stream()?;
    let mut numbers: Vec<u32> = (0..COUNT).collect();
    let memory = gpu.allocate(size_of_val(&numbers[..]))?;
    memory.upload(0, &numbers, &stream)?;
    let (mut pointer, mut count) = (memory.pointer(), COUNT);
    let mut args = [(&raw mut pointer).cast::<c_void>(), (&raw mut count).cast()];
    for shared_bytes in [0, most] {
        // SAFETY: the kernel takes the address of `count` numbers, and `count`.
        unsafe {
            gpu.launch(
                &kernel,
                [8, 1, 1],
                [128, 1, 1],
                shared_bytes,
                &stream,
                &mut args,
            )?
        };
    }
    memory.download(0, &mut numbers, &stream)?;
    assert!(numbers.iter().copied().eq(2..COUNT + 2));

    // SAFETY: as above; the driver refuses the block.
    let result = unsafe { gpu.launch(&kernel, [1; 3], [1, 1025, 1], 0, &stream, &mut args) };
    let error = result.unwrap_err();
    assert_eq!(error.code(), 1);
    let text = error.to_string();
    assert!(
        text.contains("`add_one` with grid [1, 1, 1], block [1, 1025, 1]"),
        "{text}"
    );
    if kernel.parameter_sizes().is_some() {
        // SAFETY: the missing argument is noticed before the driver sees it.
        let result = unsafe { gpu.launch(&kernel, [1; 3], [1; 3], 0, &stream, &mut args[..1]) };
        assert!(
            result
                .unwrap_err()
                .to_string()
                .contains("takes 2 arguments, not 1")
        );
    }
    Ok(())
}

fn memory(gpu: &Gpu) -> Result<(), DriverError> {
    let (free, total) = gpu.memory_info()?;
    assert!(0 < free && free <= total);
    let error = gpu.allocate(1 << 50).unwrap_err();
    assert_eq!(error.code(), 2);
    assert!(
        error
            .to_string()
            .contains("allocating 1125899906842624 bytes on GPU 0"),
        "{error}"
    );
    assert_eq!(gpu.pinned::<u64>(usize::MAX).unwrap_err().code(), 1);

    let stream = gpu.stream()?;
    let memory = gpu.allocate(16)?;
    memory.fill(0, 16, 0x11, &stream)?;
    memory.fill(4, 8, 0x22, &stream)?;
    memory.upload(15, &[0x33_u8], &stream)?;
    let mut bytes = [0_u8; 16];
    memory.download(0, &mut bytes, &stream)?;
    assert_eq!(bytes[..4], [0x11; 4]);
    assert_eq!(bytes[4..12], [0x22; 8]);
    assert_eq!(bytes[12..], [0x11, 0x11, 0x11, 0x33]);

    for offset in [13, 17, usize::MAX] {
        assert_eq!(
            memory.upload(offset, &[0_u32], &stream).unwrap_err().code(),
            1
        );
        assert_eq!(
            memory
                .download(offset, &mut [0_u32], &stream)
                .unwrap_err()
                .code(),
            1
        );
        assert_eq!(memory.fill(offset, 4, 0, &stream).unwrap_err().code(), 1);
    }
    let error = memory.fill(8, 9, 0, &stream).unwrap_err();
    assert!(
        error.to_string().contains("9 bytes at byte 8 of 16"),
        "{error}"
    );
    memory.upload::<u32>(16, &[], &stream)
}

fn nothing(gpu: &Gpu) -> Result<(), DriverError> {
    let stream = gpu.stream()?;
    let memory = gpu.allocate(0)?;
    assert_eq!((memory.pointer(), memory.bytes()), (0, 0));
    memory.upload::<f32>(0, &[], &stream)?;
    memory.fill(0, 0, 0, &stream)?;
    assert_eq!(memory.upload(0, &[1_u8], &stream).unwrap_err().code(), 1);
    let mut pinned = gpu.pinned::<f64>(0)?;
    memory.upload_async(0, &pinned, 0..0, &stream)?;
    memory.download_async(0, &mut pinned, 0..0, &stream)?;
    assert!(pinned.is_empty() && pinned.slice()?.is_empty());
    Ok(())
}

fn streams(gpu: &Gpu) -> Result<(), DriverError> {
    const COUNT: usize = 1 << 20;
    let (there, back) = (gpu.stream()?, gpu.stream()?);
    let (start, end) = (gpu.timed_event()?, gpu.timed_event()?);
    let uploaded = gpu.event()?;
    assert!(uploaded.is_done()?);
    assert_eq!(end.milliseconds_since(&start).unwrap_err().code(), 400);

    let memory = gpu.allocate(4 * COUNT)?;
    let mut source = gpu.pinned::<u32>(COUNT)?;
    let mut target = gpu.pinned::<u32>(COUNT)?;
    assert!(source.slice()?.iter().all(|&number| number == 0));
    for round in 0..3 {
        for (i, number) in source.slice_mut()?.iter_mut().enumerate() {
            *number = i as u32 ^ round;
        }
        start.record(&there)?;
        for part in [0..COUNT / 4, COUNT / 4..COUNT] {
            memory.upload_async(4 * part.start, &source, part, &there)?;
        }
        uploaded.record(&there)?;
        // Waits until the upload has read the numbers.
        source.slice_mut()?.fill(u32::MAX);
        back.wait_for(&uploaded)?;
        memory.download_async(0, &mut target, 0..COUNT, &back)?;
        end.record(&back)?;
        // Both halves swap places on the way back.
        memory.download_async(0, &mut target, COUNT / 2..COUNT, &back)?;
        memory.download_async(2 * COUNT, &mut target, 0..COUNT / 2, &back)?;
        // SAFETY: the stream lives.
        unsafe { end.hold_up(there.raw())? };
        let half = COUNT as u32 / 2;
        let expected = (half..2 * half).chain(0..half).map(|i| i ^ round);
        assert!(
            target.slice()?.iter().copied().eq(expected),
            "round {round}"
        );
    }
    end.synchronize()?;
    assert!(end.is_done()?);
    assert!(end.milliseconds_since(&start)? > 0.0);
    assert_eq!(uploaded.milliseconds_since(&start).unwrap_err().code(), 400);

    let beyond = memory.upload_async(0, &source, 1..COUNT + 1, &there);
    assert!(
        beyond
            .unwrap_err()
            .to_string()
            .contains("elements 1..1048577 of 1048576")
    );
    assert_eq!(
        memory
            .upload_async(4, &source, 0..COUNT, &there)
            .unwrap_err()
            .code(),
        1
    );
    Ok(())
}

/// Objects outlive the handles that they were made with, and wait for queued work when dropped;
/// the fake driver counts those that do not.
fn dropped_in_use(gpu: Gpu, module: Module) -> Result<(), DriverError> {
    let stream = gpu.stream()?;
    let memory = gpu.allocate(1 << 20)?;
    let mut pinned = gpu.pinned::<u8>(1 << 20)?;
    let kernel = module.function("add_one")?;
    drop((gpu, module));

    memory.upload_async(0, &pinned, 0..pinned.len(), &stream)?;
    memory.download_async(0, &mut pinned, 0..1, &stream)?;
    drop(pinned);
    memory.fill(0, 1, 0, &stream)?;
    drop(kernel);
    memory.fill(0, 1, 0, &stream)?;
    drop(memory);
    stream.synchronize()
}
