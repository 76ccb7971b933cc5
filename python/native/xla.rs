//! Handlers of XLA's foreign function interface, by which JAX calls sums on the CPU and on GPUs without Python.
//!
//! The interface consists of plain C structs (`xla/ffi/api/c_api.h`, version 0.3). The structs that a handler
//! reads are declared here, so nothing of XLA is needed to build or to load this. XLA supports a version for a
//! year and more, and asks a handler for its version before it calls it.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use allpairs::gpu_kernels::numerics::Precision;
use allpairs::simd::Lane;
use cuda_driver::keeping_context;
use pyo3::prelude::*;

use crate::errors::{Failure, Kind};
use crate::on_device::with_device;
use crate::sums::{Arguments, Sum, Visitor, call, of_systems, visit_all};
use crate::work::caught;

/// Version of the interface.
const VERSION: (i32, i32) = (0, 3);
/// Kind of extension that asks for the version.
const METADATA: i32 = 1;
/// Stage of a call that executes.
const EXECUTE: i32 = 3;
/// Types of numbers.
const S64: i32 = 5;
const F32: i32 = 11;
const F64: i32 = 12;
/// Kind of attribute that is an array.
const ARRAY: i32 = 1;
/// Codes of errors.
const INVALID_ARGUMENT: i32 = 3;
const INTERNAL: i32 = 13;

#[repr(C)]
struct Extension {
    size: usize,
    kind: i32,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    size: usize,
    extensions: *mut Extension,
    major: i32,
    minor: i32,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// Arguments or results.
#[repr(C)]
struct Buffers {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *mut i32,
    buffers: *mut *mut Buffer,
}

#[repr(C)]
struct Buffer {
    size: usize,
    extensions: *mut Extension,
    dtype: i32,
    data: *mut c_void,
    rank: i64,
    dims: *mut i64,
}

#[repr(C)]
struct CreateError {
    size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: i32,
}

/// The beginning of the table of XLA's functions.
#[repr(C)]
struct Api {
    size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    create_error: unsafe extern "C" fn(*mut CreateError) -> *mut c_void,
    error_message: *const c_void,
    destroy_error: unsafe extern "C" fn(*mut DestroyError),
    register_handler: *const c_void,
    stream: unsafe extern "C" fn(*mut StreamOf) -> *mut c_void,
    /// Functions that are not called.
    others: [*const c_void; 12],
    device: unsafe extern "C" fn(*mut DeviceOf) -> *mut c_void,
}

#[repr(C)]
struct DestroyError {
    size: usize,
    extensions: *mut Extension,
    error: *mut c_void,
}

/// Question for the stream of a call.
#[repr(C)]
struct StreamOf {
    size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    stream: *mut c_void,
}

/// Question for the number of a call's GPU.
#[repr(C)]
struct DeviceOf {
    size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    ordinal: i32,
}

/// Attributes of a call.
#[repr(C)]
struct Attributes {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const i32,
    names: *const *const c_void,
    values: *const *const AttributeArray,
}

#[repr(C)]
struct AttributeArray {
    dtype: i32,
    len: usize,
    data: *const c_void,
}

/// The beginning of what a handler is called with.
#[repr(C)]
pub(crate) struct Frame {
    size: usize,
    extensions: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: i32,
    arguments: Buffers,
    results: Buffers,
    attributes: Attributes,
}

impl Buffer {
    /// # Safety
    /// It is one of a call that executes.
    unsafe fn dims(&self) -> &[i64] {
        match self.rank {
            0 => &[],
            // SAFETY: there are as many, as the caller promises.
            rank => unsafe { std::slice::from_raw_parts(self.dims, rank as usize) },
        }
    }

    /// # Safety
    /// It is one of a call that executes.
    unsafe fn len(&self) -> usize {
        // SAFETY: as of this function.
        unsafe { self.dims() }.iter().product::<i64>() as usize
    }

    /// The numbers, as f64.
    ///
    /// # Safety
    /// It is one of a call that executes.
    unsafe fn numbers(&self) -> Result<Vec<f64>, Failure> {
        // SAFETY: the data are as many numbers of this type as the dimensions say.
        unsafe {
            let len = self.len();
            match self.dtype {
                _ if len == 0 => Ok(vec![]),
                F64 => Ok(std::slice::from_raw_parts(self.data.cast::<f64>(), len).to_vec()),
                F32 => {
                    let numbers = std::slice::from_raw_parts(self.data.cast::<f32>(), len);
                    Ok(numbers.iter().map(|&x| f64::from(x)).collect())
                }
                other => Err(Failure::new(Kind::Internal, format!("XLA's type {other}"))),
            }
        }
    }

    /// Sets the numbers.
    ///
    /// # Safety
    /// It is a result of a call that executes.
    unsafe fn set(&self, numbers: &[f64]) -> Result<(), Failure> {
        // SAFETY: there is room for as many numbers of this type as the dimensions say.
        unsafe {
            let len = self.len();
            if len != numbers.len() {
                let text = format!("a result has {len} numbers instead of {}", numbers.len());
                return Err(Failure::new(Kind::Internal, text));
            }
            match self.dtype {
                _ if len == 0 => {}
                F64 => ptr::copy_nonoverlapping(numbers.as_ptr(), self.data.cast::<f64>(), len),
                F32 => {
                    let to = std::slice::from_raw_parts_mut(self.data.cast::<f32>(), len);
                    to.iter_mut()
                        .zip(numbers)
                        .for_each(|(to, &x)| *to = x as f32);
                }
                other => return Err(Failure::new(Kind::Internal, format!("XLA's type {other}"))),
            }
        }
        Ok(())
    }
}

impl Buffers {
    /// # Safety
    /// They are of a call that executes.
    unsafe fn get(&self, index: usize) -> &Buffer {
        assert!(
            (index as i64) < self.count,
            "XLA hands over too few buffers"
        );
        // SAFETY: there are `count` pointers to buffers that live as long as the call.
        unsafe { &**self.buffers.add(index) }
    }
}

impl Attributes {
    /// The numbers of the only attribute that handlers have, if the call has it.
    ///
    /// # Safety
    /// They are of a call that executes.
    unsafe fn asked(&self) -> Result<Vec<i64>, Failure> {
        if self.count == 0 {
            return Ok(vec![]);
        }
        // SAFETY: there is an attribute, and one of the kind array points to a struct of this form.
        unsafe {
            if *self.kinds == ARRAY {
                let array = &**self.values;
                if array.dtype == S64 {
                    let numbers = std::slice::from_raw_parts(array.data.cast::<i64>(), array.len);
                    return Ok(numbers.to_vec());
                }
            }
        }
        Err(Failure::new(
            Kind::Internal,
            "XLA hands over another attribute",
        ))
    }
}

impl Frame {
    /// Numbers of systems and of bodies in each, and whether arrays are of f32. Systems are leading dimensions of the
    /// positions, if there are any.
    ///
    /// # Safety
    /// The frame is of a call that executes.
    unsafe fn shape(&self) -> ((usize, usize), bool) {
        // SAFETY: as of this function.
        let (dims, dtype) = unsafe {
            let positions = self.arguments.get(0);
            (positions.dims(), positions.dtype)
        };
        let (leading, of_system) = dims.split_at(dims.len() - 2);
        let systems = leading.iter().product::<i64>() as usize;
        ((systems, of_system[0] as usize), dtype == F32)
    }
}

/// Computes all systems of a call: the arguments are x, m, ε and more, each with the systems as leading
/// dimensions, if there are any.
///
/// # Safety
/// The frame is of a call that executes.
unsafe fn compute<S: Sum, R: Lane>(frame: &Frame) -> Result<(), Failure> {
    // SAFETY: as of this function.
    let arguments = unsafe {
        let ((systems, n), rounded) = frame.shape();
        let all = 0..frame.arguments.count as usize;
        let numbers = all.map(|index| frame.arguments.get(index).numbers());
        Arguments {
            numbers: numbers.collect::<Result<_, _>>()?,
            n,
            systems,
            rounded,
            asked: frame.attributes.asked()?,
        }
    };
    let found = of_systems::<S, R>(&arguments)?;
    for (index, numbers) in found.iter().enumerate() {
        // SAFETY: as of this function.
        unsafe { frame.results.get(index).set(numbers)? };
    }
    Ok(())
}

/// Queues the same on the call's GPU, in its stream.
///
/// # Safety
/// The frame is of a call that executes on a GPU.
unsafe fn queue<S: Sum, R: Lane>(frame: &Frame) -> Result<(), Failure> {
    // SAFETY: the table and the context are the frame's; arguments and results lie on the GPU, as long as their
    // dimensions say, until the work of the stream that follows.
    unsafe {
        let api = frame.api;
        let checked = |error: *mut c_void| match error.is_null() {
            true => Ok(()),
            false => {
                let mut arguments = DestroyError {
                    size: size_of::<DestroyError>(),
                    extensions: ptr::null_mut(),
                    error,
                };
                ((*api).destroy_error)(&raw mut arguments);
                Err(Failure::new(
                    Kind::Internal,
                    "XLA names no stream or device",
                ))
            }
        };
        if (*api).size < size_of::<Api>() {
            let text = "allpairs.jax needs a newer JAX to compute on GPUs: pip install -U jax";
            return Err(Failure::new(Kind::Compute, text));
        }
        let mut stream = StreamOf {
            size: size_of::<StreamOf>(),
            extensions: ptr::null_mut(),
            context: frame.context,
            stream: ptr::null_mut(),
        };
        checked(((*api).stream)(&raw mut stream))?;
        let mut device = DeviceOf {
            size: size_of::<DeviceOf>(),
            extensions: ptr::null_mut(),
            context: frame.context,
            ordinal: 0,
        };
        checked(((*api).device)(&raw mut device))?;
        let (shape, rounded) = frame.shape();
        let task = S::task(&frame.attributes.asked()?)?;
        let call = call(task, R::PRECISION == Precision::F64, rounded, shape);
        let addresses = |buffers: &Buffers| -> Vec<u64> {
            let all = 0..buffers.count as usize;
            all.map(|index| buffers.get(index).data as u64).collect()
        };
        let (arguments, results) = (addresses(&frame.arguments), addresses(&frame.results));
        with_device(&format!("cuda:{}", device.ordinal), |sums| {
            sums.compute_in_place(&call, &arguments, &results, stream.stream as u64)?;
            Ok(())
        })
    }
}

/// A handler for arrays on the CPU.
///
/// # Safety
/// XLA calls it, with a frame of version 0.3 or later.
unsafe extern "C" fn handle<S: Sum, R: Lane>(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the frame is of a call that executes, where it is used.
    unsafe { answer(frame, |frame| compute::<S, R>(frame)) }
}

/// A handler for arrays on a GPU.
///
/// # Safety
/// As [`handle`].
unsafe extern "C" fn handle_on_gpu<S: Sum, R: Lane>(frame: *mut Frame) -> *mut c_void {
    // SAFETY: the frame is of a call that executes, where it is used.
    unsafe { answer(frame, |frame| keeping_context(|| queue::<S, R>(frame))) }
}

/// Answers a call of XLA's, by work where it is to execute.
///
/// # Safety
/// The frame is XLA's, of version 0.3 or later.
unsafe fn answer(
    frame: *mut Frame,
    work: impl FnOnce(&Frame) -> Result<(), Failure> + Send,
) -> *mut c_void {
    // SAFETY: XLA's frame, and what it points to, live as long as the call; an extension of this kind is a
    // question for the version, which is written where it points to.
    unsafe {
        let next = (*frame).extensions;
        if !next.is_null() && (*next).kind == METADATA {
            let metadata = (*next.cast::<MetadataExtension>()).metadata;
            ((*metadata).version.major, (*metadata).version.minor) = VERSION;
            (*metadata).traits = 0;
            return ptr::null_mut();
        }
        if (*frame).stage != EXECUTE {
            return ptr::null_mut();
        }
        let shared = Shared(frame);
        match caught(move || work(shared.frame())) {
            Ok(()) => ptr::null_mut(),
            Err(failure) => error((*frame).api, &failure),
        }
    }
}

/// A frame, for the thread that computes.
struct Shared(*const Frame);

// SAFETY: the call waits for the thread, and XLA lets any thread write results before it returns.
unsafe impl Send for Shared {}

impl Shared {
    /// # Safety
    /// The call goes on.
    unsafe fn frame(&self) -> &Frame {
        // SAFETY: as of this function.
        unsafe { &*self.0 }
    }
}

/// An error of XLA's, which then owns it.
///
/// # Safety
/// The table is a frame's.
unsafe fn error(api: *const Api, failure: &Failure) -> *mut c_void {
    let text = failure.text.replace('\0', "");
    let message = CString::new(text).unwrap_or_default();
    let mut arguments = CreateError {
        size: size_of::<CreateError>(),
        extensions: ptr::null_mut(),
        message: message.as_ptr(),
        code: match failure.kind {
            Kind::Argument => INVALID_ARGUMENT,
            _ => INTERNAL,
        },
    };
    // SAFETY: every version's table has the function; XLA copies the message.
    unsafe { ((*api).create_error)(&raw mut arguments) }
}

/// Collects handlers.
struct Handlers(Vec<(String, &'static str, usize)>);

type Handler = unsafe extern "C" fn(*mut Frame) -> *mut c_void;

impl Visitor for Handlers {
    fn visit<S: Sum>(&mut self, name: &'static str) {
        let single: [Handler; 2] = [handle::<S, f32>, handle_on_gpu::<S, f32>];
        let double: [Handler; 2] = [handle::<S, f64>, handle_on_gpu::<S, f64>];
        for (digits, handlers) in [("single", single), ("double", double)] {
            for (platform, handler) in ["cpu", "CUDA"].into_iter().zip(handlers) {
                let name = format!("{name}_{digits}");
                self.0.push((name, platform, handler as usize));
            }
        }
    }
}

/// Handlers by name and platform, as addresses: `…_double` computes pairs in f64, `…_single` in f32, arrays of either.
#[pyfunction]
pub(crate) fn xla_handlers() -> Vec<(String, &'static str, usize)> {
    let mut handlers = Handlers(vec![]);
    visit_all(&mut handlers);
    handlers.0
}
