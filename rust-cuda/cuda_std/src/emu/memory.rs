//! The memory that a launch's threads see, each access checked: bounds, alignment, permission,
//! contents, order.

use super::fault::Access;
use super::region::Region;
use super::shadow::{Clock, Objection, Shadow, Stamp};

/// An access that a kernel wants to make.
#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) access: Access,
    pub(super) address: usize,
    pub(super) bytes: usize,
    pub(super) alignment: usize,
}

impl Attempt {
    /// An access to a `T`.
    #[inline]
    pub(super) fn of<T>(access: Access, address: usize) -> Self {
        Self {
            access,
            address,
            bytes: size_of::<T>(),
            alignment: align_of::<T>(),
        }
    }
}

/// A byte of shared memory, or of the region with that index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Byte {
    pub(super) region: Option<usize>,
    pub(super) offset: usize,
}

/// Why an access is refused; the launch makes a [`Fault`](super::Fault) of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not inside the memory, or not inside one region.
    Bounds,
    /// No multiple of the alignment.
    Misaligned(Byte),
    /// A write where only reads are allowed.
    ReadOnly(Byte),
    /// Not ordered after this earlier access.
    Race {
        byte: Byte,
        earlier: Access,
        by: Stamp,
    },
    /// A read of what the block has not written.
    Unwritten(Byte),
}

impl Refusal {
    fn from(objection: Objection, region: Option<usize>) -> Self {
        match objection {
            Objection::Race {
                offset,
                earlier,
                by,
            } => Self::Race {
                byte: Byte { region, offset },
                earlier,
                by,
            },
            Objection::Unwritten { offset } => Self::Unwritten(Byte { region, offset }),
        }
    }
}

/// A block's shared memory. The next block inherits the bytes, but cannot read them: to the shadow
/// they are unwritten.
pub(super) struct SharedMemory {
    bytes: Vec<u8>,
    shadow: Shadow<false>,
}

impl SharedMemory {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes],
            shadow: Shadow::new(bytes),
        }
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The first of the bytes, if the access is allowed.
    #[inline]
    pub(super) fn check(&mut self, attempt: Attempt, clock: Clock) -> Result<*mut u8, Refusal> {
        let Attempt {
            access,
            address,
            bytes,
            alignment,
        } = attempt;
        if address > self.bytes.len() || bytes > self.bytes.len() - address {
            return Err(Refusal::Bounds);
        }
        if !address.is_multiple_of(alignment) {
            return Err(Refusal::Misaligned(Byte {
                region: None,
                offset: address,
            }));
        }
        match self.shadow.access(access, address, bytes, clock) {
            Ok(()) => Ok(self.bytes[address..].as_mut_ptr()),
            Err(objection) => Err(Refusal::from(objection, None)),
        }
    }
}

/// One region's bounds and history. Reads of read-only regions need no history.
struct Tracked {
    start: usize,
    bytes: usize,
    writable: bool,
    shadow: Shadow<true>,
}

/// The launch's regions.
pub(super) struct GlobalMemory {
    regions: Vec<Tracked>,
    /// The region of the last access, where the next is sought first.
    last: usize,
}

impl GlobalMemory {
    pub(super) fn new(regions: &[Region<'_>]) -> Self {
        let regions = regions
            .iter()
            .map(|region| Tracked {
                start: region.start(),
                bytes: region.bytes(),
                writable: region.is_writable(),
                shadow: Shadow::new(region.bytes()),
            })
            .collect();
        Self { regions, last: 0 }
    }

    /// Checks whether the access is allowed.
    #[inline]
    pub(super) fn check(&mut self, attempt: Attempt, clock: Clock) -> Result<(), Refusal> {
        let Attempt {
            access,
            address,
            bytes,
            alignment,
        } = attempt;
        let (index, offset) = self.locate(address, bytes).ok_or(Refusal::Bounds)?;
        let byte = Byte {
            region: Some(index),
            offset,
        };
        let region = &mut self.regions[index];
        if !offset.is_multiple_of(alignment) {
            return Err(Refusal::Misaligned(byte));
        }
        if !region.writable {
            return if access == Access::Read {
                Ok(())
            } else {
                Err(Refusal::ReadOnly(byte))
            };
        }
        match region.shadow.access(access, offset, bytes, clock) {
            Ok(()) => Ok(()),
            Err(objection) => Err(Refusal::from(objection, Some(index))),
        }
    }

    /// The region that holds all of the bytes, and their offset in it.
    #[inline]
    fn locate(&mut self, address: usize, size: usize) -> Option<(usize, usize)> {
        let offset_in = |region: &Tracked| {
            let offset = address.wrapping_sub(region.start);
            (offset <= region.bytes && size <= region.bytes - offset).then_some(offset)
        };
        if let Some(offset) = self.regions.get(self.last).and_then(offset_in) {
            return Some((self.last, offset));
        }
        let found = self
            .regions
            .iter()
            .enumerate()
            .find_map(|(index, region)| Some((index, offset_in(region)?)));
        self.last = found.map_or(self.last, |(index, _)| index);
        found
    }
}

/// Place where an access outside all regions lies, from the nearest of them.
pub(super) fn nearest(regions: &[Region<'_>], address: usize) -> String {
    let distance = |region: &Region<'_>| {
        let end = region.start() + region.bytes();
        region
            .start()
            .saturating_sub(address)
            .max(address.saturating_sub(end))
    };
    let Some(region) = regions.iter().min_by_key(|region| distance(region)) else {
        return "the launch has no global memory".to_owned();
    };
    let (name, bytes) = (region.name(), region.bytes());
    if address < region.start() {
        let before = region.start() - address;
        format!("{before} bytes before the start of region `{name}` ({bytes} bytes)")
    } else {
        let offset = address - region.start();
        format!("offset {offset} in region `{name}`, which has {bytes} bytes")
    }
}
