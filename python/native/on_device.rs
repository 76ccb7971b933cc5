//! Devices that sum over pairs, each opened once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use allpairs::force::pair_sums::PairSums;
use allpairs::selection::{Place, Request, select};
use allpairs::variants::preferred::ForceAccuracy;

use crate::errors::Failure;
use crate::forces::{device, machine};

type Opened = Arc<Mutex<Box<dyn PairSums>>>;

/// Devices by their names.
static DEVICES: Mutex<Option<HashMap<String, Opened>>> = Mutex::new(None);

/// The place that a name means: for `auto` the first GPU, or the CPU.
pub(crate) fn place(name: &str) -> Result<Place, Failure> {
    let request = Request {
        accuracy: Some(ForceAccuracy::Double),
        ..Request::new(0)
    };
    Ok(select(&request.on(device(name)?))?.place)
}

/// Does work with the sums of a device.
pub(crate) fn with_device<T>(
    name: &str,
    work: impl FnOnce(&mut dyn PairSums) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let known = {
        let devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
        devices
            .as_ref()
            .and_then(|devices| devices.get(name).cloned())
    };
    let opened = match known {
        Some(opened) => opened,
        None => {
            let made: Opened = Arc::new(Mutex::new(machine(place(name)?).pair_sums()?));
            let mut devices = DEVICES.lock().unwrap_or_else(PoisonError::into_inner);
            let devices = devices.get_or_insert_default();
            Arc::clone(devices.entry(name.to_owned()).or_insert(made))
        }
    };
    // A panic leaves buffers that the next call fills again.
    let mut sums = opened.lock().unwrap_or_else(PoisonError::into_inner);
    work(&mut **sums)
}
