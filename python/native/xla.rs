//! Handlers of XLA's foreign function interface, by which JAX calls the CPU's sums without Python.
//!
//! The interface consists of plain C structs (`xla/ffi/api/c_api.h`, version 0.3). The structs that a handler
//! reads are declared here, so nothing of XLA is needed to build or to load this. XLA supports a version for a
//! year and more, and asks a handler for its version before it calls it.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use allpairs::simd::Lane;
use pyo3::prelude::*;

use crate::errors::{Failure, Kind};
use crate::sums::{Arguments, Sum, Visitor, of_systems, visit_all};
use crate::work::caught;

/// Version of the interface.
const VERSION: (i32, i32) = (0, 3);
/// Kind of extension that asks for the version.
const METADATA: i32 = 1;
/// Stage of a call that executes.
const EXECUTE: i32 = 3;
/// Types of numbers.
const S32: i32 = 4;
const F32: i32 = 11;
const F64: i32 = 12;
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
                S32 => {
                    let numbers = std::slice::from_raw_parts(self.data.cast::<i32>(), len);
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

/// Computes all systems of a call: the arguments are x, m, ε and more, each with the systems as leading
/// dimensions, if there are any.
///
/// # Safety
/// The frame is of a call that executes.
unsafe fn compute<S: Sum, R: Lane>(frame: &Frame) -> Result<(), Failure> {
    // SAFETY: as of this function.
    let arguments = unsafe {
        let positions = frame.arguments.get(0);
        let dims = positions.dims();
        let (leading, of_system) = dims.split_at(dims.len() - 2);
        let all = 0..frame.arguments.count as usize;
        let numbers = all.map(|index| frame.arguments.get(index).numbers());
        Arguments {
            numbers: numbers.collect::<Result<_, _>>()?,
            n: of_system[0] as usize,
            systems: leading.iter().product::<i64>() as usize,
            rounded: positions.dtype == F32,
        }
    };
    let found = of_systems::<S, R>(&arguments)?;
    for (index, numbers) in found.iter().enumerate() {
        // SAFETY: as of this function.
        unsafe { frame.results.get(index).set(numbers)? };
    }
    Ok(())
}

/// A handler.
///
/// # Safety
/// XLA calls it, with a frame of version 0.3 or later.
unsafe extern "C" fn handle<S: Sum, R: Lane>(frame: *mut Frame) -> *mut c_void {
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
        match caught(move || compute::<S, R>(shared.frame())) {
            Ok(()) => ptr::null_mut(),
            Err(failure) => error(&*(*frame).api, &failure),
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
unsafe fn error(api: &Api, failure: &Failure) -> *mut c_void {
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
    // SAFETY: XLA copies the message.
    unsafe { (api.create_error)(&raw mut arguments) }
}

/// Collects handlers.
struct Handlers(Vec<(String, usize)>);

impl Visitor for Handlers {
    fn visit<S: Sum>(&mut self, name: &'static str) {
        let single: unsafe extern "C" fn(*mut Frame) -> *mut c_void = handle::<S, f32>;
        let double: unsafe extern "C" fn(*mut Frame) -> *mut c_void = handle::<S, f64>;
        self.0.push((format!("{name}_single"), single as usize));
        self.0.push((format!("{name}_double"), double as usize));
    }
}

/// Handlers by name, as addresses: `…_double` computes pairs in f64, `…_single` in f32, arrays of either.
#[pyfunction]
pub(crate) fn xla_handlers() -> Vec<(String, usize)> {
    let mut handlers = Handlers(vec![]);
    visit_all(&mut handlers);
    handlers.0
}
