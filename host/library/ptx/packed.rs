//! The file that all modules are packed in: every kernel, compressed, for every GPU generation.
//! `cuda_builder` writes it, and its `packed.rs` describes it.

use std::collections::BTreeMap;
use std::io;

use flate2::read::DeflateDecoder;

/// A kernel, or what stands before the first one, of every generation.
#[derive(Debug)]
pub(super) struct Packed {
    /// Bytes of the text of each generation, 0 where it lacks the kernel.
    lengths: Vec<usize>,
    /// Number of pieces that each text is cut into.
    pieces: usize,
    /// Piece 0 of each text, piece 1 of each, and so on, as they are in the file (RFC 1951).
    deflated: &'static [u8],
}

/// Contents of the file.
#[derive(Debug)]
pub(super) struct Archive {
    /// Compute capability of each generation, as 10 · major + minor.
    pub(super) generations: Vec<u32>,
    /// The kernels by name; what stands before the first one has an empty name.
    pub(super) records: BTreeMap<&'static str, Packed>,
}

impl Archive {
    /// Reads the embedded file.
    ///
    /// # Panics
    /// For any other file: the build script compares a hash before it lets one be embedded.
    pub(super) fn read(mut file: &'static [u8]) -> Self {
        let generations: Vec<u32> = (0..number(&mut file)).map(|_| number(&mut file)).collect();
        let mut records = BTreeMap::new();
        while !file.is_empty() {
            let name = str::from_utf8(bytes(&mut file)).expect("names are ASCII");
            let lengths = generations.iter().map(|_| number(&mut file) as usize);
            let packed = Packed {
                lengths: lengths.collect(),
                pieces: number(&mut file) as usize,
                deflated: bytes(&mut file),
            };
            records.insert(name, packed);
        }
        Self {
            generations,
            records,
        }
    }
}

impl Packed {
    /// Returns whether a generation, counted from the oldest, has it.
    pub(super) fn is_of(&self, generation: usize) -> bool {
        self.lengths[generation] > 0
    }

    /// The text of a generation, counted from the oldest.
    pub(super) fn text(&self, generation: usize) -> String {
        let all = io::read_to_string(DeflateDecoder::new(self.deflated));
        let all = all.expect("the build script packed texts");
        let mut rest = all.as_str();
        let mut text = String::with_capacity(self.lengths[generation]);
        for piece in 0..self.pieces {
            for (of, length) in self.lengths.iter().enumerate() {
                let [start, end] = [piece, piece + 1].map(|piece| piece * length / self.pieces);
                let (taken, after) = rest.split_at(end - start);
                if of == generation {
                    text.push_str(taken);
                }
                rest = after;
            }
        }
        text
    }
}

/// Takes a number off the front.
fn number(file: &mut &'static [u8]) -> u32 {
    let (number, rest) = file.split_first_chunk().expect("a whole file");
    *file = rest;
    u32::from_le_bytes(*number)
}

/// Takes a number off the front, and as many bytes.
fn bytes(file: &mut &'static [u8]) -> &'static [u8] {
    let length = number(file) as usize;
    let (bytes, rest) = file.split_at(length);
    *file = rest;
    bytes
}
