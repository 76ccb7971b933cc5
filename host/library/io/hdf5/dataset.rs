//! The numbers of an HDF5 dataset, which are believed only as far as the file's size confirms them.

use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::{ByteOrder, Dataset, Datatype, Hdf5File};

use super::super::ReadFault;
use super::super::column::{CHUNK, Class, EXPANSION, Numbers};
use super::{fault, malformed};

/// A chunk of no dataset needs to be larger than the dataset or this: programs that make datasets
/// to be appended to choose chunks up to about a MiB.
const LARGEST_SPARE_CHUNK: u64 = 8 << 20;

/// A table of `rows` × `width` numbers.
pub(super) struct Table<'a> {
    file: &'a Hdf5File,
    dataset: Dataset,
    place: String,
    numbers: Numbers,
    rows: u64,
    width: u64,
    layout: DataLayout,
}

impl<'a> Table<'a> {
    /// The table that `dataset` is. Its bytes have been compared with the file's `size` after this.
    pub(super) fn of(
        file: &'a Hdf5File,
        dataset: Dataset,
        place: String,
        size: u64,
    ) -> Result<Self, ReadFault> {
        let (rows, width) = match *dataset.shape() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            ref shape => {
                let problem = format!("its shape is {shape:?}, not the shape of a table");
                return Err(malformed(&place, problem));
            }
        };
        let raw = dataset
            .raw_datatype()
            .map_err(|error| fault(&place, error))?;
        let numbers =
            numbers_of(dataset.dtype(), &raw).map_err(|problem| malformed(&place, problem))?;
        let header = file
            .get_or_parse_header(dataset.address())
            .map_err(|error| fault(&place, error))?;
        let mut layout = None;
        let mut is_filtered = false;
        for message in &header.messages {
            match message {
                HdfMessage::DataLayout(message) => layout = Some(message.layout.clone()),
                HdfMessage::FilterPipeline(pipeline) => {
                    is_filtered |= !pipeline.filters.is_empty();
                }
                HdfMessage::ExternalFiles(_) => {
                    let problem = "its numbers are in another file, and only this one is read";
                    return Err(malformed(&place, problem));
                }
                _ => {}
            }
        }
        let Some(layout) = layout else {
            return Err(malformed(&place, "it does not say where its numbers are"));
        };
        let expansion = if is_filtered { EXPANSION } else { 1 };
        let bytes = rows
            .checked_mul(width)
            .and_then(|elements| elements.checked_mul(numbers.bytes as u64))
            .filter(|bytes| *bytes <= size.saturating_mul(expansion));
        let Some(bytes) = bytes else {
            let problem = format!("{rows} rows of {width} numbers are more than the file holds");
            return Err(malformed(&place, problem));
        };
        let table = Self {
            file,
            dataset,
            place,
            numbers,
            rows,
            width,
            layout,
        };
        table.check_chunks(bytes, size)?;
        Ok(table)
    }

    /// Compares the dimensions of chunks with the table and the file.
    fn check_chunks(&self, bytes: u64, size: u64) -> Result<(), ReadFault> {
        let Some(chunk) = self.dataset.chunks() else {
            return Ok(());
        };
        let chunk: Vec<u64> = chunk.into_iter().map(u64::from).collect();
        let shape = self.dataset.shape();
        let of_chunk = chunk
            .iter()
            .try_fold(self.numbers.bytes as u64, |bytes, n| bytes.checked_mul(*n))
            .filter(|of_chunk| *of_chunk <= bytes.max(LARGEST_SPARE_CHUNK));
        // Each chunk takes some bytes of the file, if only in the list of chunks.
        let count = shape
            .iter()
            .zip(&chunk)
            .try_fold(1_u64, |count, (rows, of_chunk)| {
                count.checked_mul(rows.checked_add(of_chunk.checked_sub(1)?)? / of_chunk)
            })
            .filter(|count| *count <= size / 4);
        if chunk.len() != shape.len() || of_chunk.is_none() || count.is_none() {
            let problem = format!(
                "chunks of {chunk:?} do not suit a dataset of {shape:?} in a file of {size} bytes; \
                 the file is damaged, copy or write it again"
            );
            return Err(malformed(&self.place, problem));
        }
        Ok(())
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Refuses a table of another shape.
    pub(super) fn expect(&self, rows: u64, width: u64) -> Result<(), ReadFault> {
        let is_a_list = self.dataset.shape().len() == 1;
        if self.rows == rows && self.width == width && (is_a_list || width > 1) {
            return Ok(());
        }
        let wanted = match width {
            1 => format!("[{rows}]"),
            _ => format!("[{rows}, {width}]"),
        };
        let problem = format!("its shape is {:?}, not {wanted}", self.dataset.shape());
        Err(malformed(&self.place, problem))
    }

    /// Hands every element to `put`, with its row and column, in no particular order.
    pub(super) fn each(
        &self,
        mut put: impl FnMut(usize, usize, &[u8], Numbers),
    ) -> Result<(), ReadFault> {
        let element = self.numbers.bytes;
        let (rows, width) = (self.rows as usize, self.width as usize);
        let total = rows * width * element;
        let mut in_order = |first: usize, bytes: &[u8]| {
            for (i, value) in bytes.chunks_exact(element).enumerate() {
                put(
                    (first + i) / width,
                    (first + i) % width,
                    value,
                    self.numbers,
                );
            }
        };
        let incomplete = || {
            let problem = "part of it was never written, or its place is lost: the file is \
                           damaged, copy or write it again";
            malformed(&self.place, problem)
        };
        match &self.layout {
            DataLayout::Compact { data } if data.len() == total => in_order(0, data),
            DataLayout::Contiguous { address, size } if *size == total as u64 => {
                // An address of all ones stands for data that were never written.
                let end = address.checked_add(*size);
                if end.is_none_or(|end| end > self.file.storage().len()) {
                    return Err(incomplete());
                }
                let block = CHUNK * element;
                for at in (0..total).step_by(block) {
                    let bytes = self
                        .file
                        .storage()
                        .read_range(address + at as u64, block.min(total - at))
                        .map_err(|error| fault(&self.place, error))?;
                    in_order(at / element, &bytes);
                }
            }
            DataLayout::Compact { .. } | DataLayout::Contiguous { .. } => return Err(incomplete()),
            DataLayout::Chunked { .. } => {
                let chunks = self
                    .dataset
                    .iter_chunks()
                    .map_err(|error| fault(&self.place, error))?;
                let mut written = 0;
                for chunk in chunks {
                    let chunk = chunk.map_err(|error| fault(&self.place, error))?;
                    // The library has refused chunks outside of the dataset, and two in one place.
                    let (offsets, shape) = (chunk.offsets(), chunk.shape());
                    let range = |axis: usize, whole: usize| {
                        let start = offsets.get(axis).map_or(0, |offset| *offset as usize);
                        let length = shape.get(axis).map_or(1, |length| *length as usize);
                        (start, length, whole.saturating_sub(start).min(length))
                    };
                    let (first_row, _, rows) = range(0, rows);
                    let (first_column, row_length, columns) = range(1, width);
                    for row in 0..rows {
                        let start = row * row_length * element;
                        let values = chunk.bytes().get(start..start + columns * element);
                        let values = values.ok_or_else(incomplete)?;
                        for (column, value) in values.chunks_exact(element).enumerate() {
                            let place = (first_row + row, first_column + column);
                            put(place.0, place.1, value, self.numbers);
                        }
                    }
                    written += rows * columns;
                }
                if written != rows * width {
                    return Err(incomplete());
                }
            }
        }
        Ok(())
    }

    /// Reads real numbers into columns that have a place for each, from `first` on.
    pub(super) fn reals(&self, first: usize, columns: &mut [&mut [f64]]) -> Result<(), ReadFault> {
        self.each(|row, column, value, numbers| {
            columns[column][first + row] = numbers.real(value);
        })
    }

    /// Reads ids into a column that has a place for each, from `first` on.
    pub(super) fn ids(&self, first: usize, ids: &mut [u64]) -> Result<(), ReadFault> {
        let mut bad = None;
        self.each(|row, _, value, numbers| match numbers.id(value) {
            Some(id) => ids[first + row] = id,
            None => {
                let (earlier, _) = bad.unwrap_or((usize::MAX, 0.0));
                if row < earlier {
                    bad = Some((row, numbers.real(value)));
                }
            }
        })?;
        match bad {
            None => Ok(()),
            Some((row, value)) => Err(malformed(
                &self.place,
                format!(
                    "row {row} is {value}, and an id is an integer from 0 to 18446744073709551615"
                ),
            )),
        }
    }
}

/// The numbers of an attribute: any type of them, and booleans.
pub(super) fn values(datatype: &Datatype, bytes: &[u8]) -> Option<Vec<f64>> {
    let numbers = plain(datatype)?;
    let elements = bytes.chunks_exact(numbers.bytes);
    Some(elements.map(|element| numbers.real(element)).collect())
}

/// The type of plain numbers, without a look at where their bits are.
fn plain(datatype: &Datatype) -> Option<Numbers> {
    let (class, bytes, order) = match datatype {
        Datatype::FloatingPoint { size, byte_order } => (Class::Real, *size, *byte_order),
        Datatype::FixedPoint {
            size,
            signed: true,
            byte_order,
        } => (Class::Signed, *size, *byte_order),
        Datatype::FixedPoint {
            size, byte_order, ..
        } => (Class::Unsigned, *size, *byte_order),
        Datatype::Enum { base, .. } => return plain(base),
        _ => return None,
    };
    let numbers = Numbers {
        class,
        bytes: usize::from(bytes),
        big_endian: order == ByteOrder::BigEndian,
    };
    numbers.is_known().then_some(numbers)
}

/// The type of a dataset's numbers, if they are stored as processors store them; `raw` is the
/// datatype as the file has it. The library does not look at where the bits of a number are, and
/// would take a number of another layout for one of this.
fn numbers_of(datatype: &Datatype, raw: &[u8]) -> Result<Numbers, String> {
    if let Datatype::FloatingPoint { size: 2, .. } = datatype {
        return Err(
            "numbers of 16 bits (f16) are too coarse for a simulation; store f32 or f64, \
                    as in data.astype('f8')"
                .into(),
        );
    }
    let numbers = plain(datatype).ok_or("its elements are not numbers of 4 or 8 bytes")?;
    let bits = 8 * numbers.bytes as u16;
    // Bit offset, precision; exponent's place and size, mantissa's place and size; bias.
    let expected: &[u8] = match (numbers.class, numbers.bytes) {
        (Class::Real, 4) => &[0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0],
        (Class::Real, _) => &[0, 0, 64, 0, 52, 11, 0, 52, 255, 3, 0, 0],
        _ => &[0, 0, bits as u8, 0],
    };
    const PROPERTIES: usize = 8;
    let found = raw.get(PROPERTIES..PROPERTIES + expected.len());
    let is_vax = numbers.class == Class::Real && raw.get(1).is_none_or(|flags| flags & 0x40 != 0);
    if found != Some(expected) || is_vax {
        return Err(
            "its numbers are not stored as processors do it (IEEE 754, no spare bits); \
                    store f32 or f64, without a lossy filter"
                .into(),
        );
    }
    Ok(numbers)
}
