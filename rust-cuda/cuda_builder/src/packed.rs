//! All modules in one compressed file, kernel by kernel.
//!
//! A kernel is nearly the same for every generation, and its compressed bytes depend on nothing else:
//! a change to one kernel changes its part of the file, and Git stores no more than that.
//!
//! Numbers are of 32 bits, little-endian. The file begins with the number of generations and the
//! compute capability of each (10 · major + minor). Records follow up to its end:
//!
//! | field | |
//! |---|---|
//! | length of the name, the name | of a kernel; none for what stands before the first kernel |
//! | lengths of the texts | for each generation, 0 where it lacks the kernel |
//! | number of pieces | `p` |
//! | length of the data, the data | deflated (RFC 1951) |
//!
//! The data are piece 0 of each text, piece 1 of each text, and so on. Piece `i` of a text of `n`
//! bytes is what lies between its bytes `i · n / p` and `(i + 1) · n / p`. So like is near like, within
//! the 32 KiB that deflation looks back. Texts have a [`FLUSH`](crate::FLUSH) where `.ftz` goes.

use crate::NvptxArch;
use crate::module::Parts;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::collections::BTreeSet;
use std::io::Write as _;

/// Bytes of the longest piece of a text.
const PIECE: usize = 4096;

/// Packs the modules of all generations. Equal modules give equal bytes.
pub(crate) fn pack(modules: &[(NvptxArch, Parts<'_>)]) -> Vec<u8> {
    let mut packed = Vec::new();
    number(&mut packed, modules.len());
    for (arch, _) in modules {
        packed.extend(arch.number().to_le_bytes());
    }
    let heads: Vec<&str> = modules.iter().map(|(_, parts)| parts.head).collect();
    record(&mut packed, "", &heads);
    let names = modules.iter().flat_map(|(_, parts)| parts.kernels.keys());
    for name in names.collect::<BTreeSet<_>>() {
        let texts = modules
            .iter()
            .map(|(_, parts)| parts.kernels.get(name).copied().unwrap_or(""));
        record(&mut packed, name, &texts.collect::<Vec<_>>());
    }
    packed
}

fn record(packed: &mut Vec<u8>, name: &str, texts: &[&str]) {
    number(packed, name.len());
    packed.extend(name.as_bytes());
    for text in texts {
        number(packed, text.len());
    }
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let pieces = longest.div_ceil(PIECE);
    number(packed, pieces);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for piece in 0..pieces {
        for text in texts {
            let [start, end] = [piece, piece + 1].map(|piece| piece * text.len() / pieces);
            let written = encoder.write_all(&text.as_bytes()[start..end]);
            written.expect("a Vec takes everything");
        }
    }
    let data = encoder.finish().expect("a Vec takes everything");
    number(packed, data.len());
    packed.extend(data);
}

fn number(packed: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("PTX of less than 4 GiB");
    packed.extend(number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::DeflateDecoder;
    use std::io::Read as _;

    #[test]
    fn a_change_to_a_kernel_changes_its_record_alone() {
        let long = |end: &str| {
            format!(
                ".visible .entry b() {{\n{}\n{end}\n}}\n",
                "add.f32;\n".repeat(1000)
            )
        };
        let module = |end: &str| {
            format!(
                ".version 7.0\n.visible .entry a() {{ ret; }}\n{}.visible .entry c() {{ ret; }}\n",
                long(end)
            )
        };
        let packed = |[old, new]: [&str; 2]| {
            let (old, new) = (module(old), module(new));
            pack(&[
                (NvptxArch::Sm75, Parts::of(&old).unwrap()),
                (NvptxArch::Sm90, Parts::of(&new).unwrap()),
            ])
        };
        let (one, other) = (packed(["ret;", "ret;"]), packed(["ret;", "trap;"]));
        assert_eq!(one, packed(["ret;", "ret;"]));
        let number = |at: usize| u32::from_le_bytes(one[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!([number(0), number(4), number(8)], [2, 75, 90]);
        // Of the kernel that changes: its name, two lengths, its pieces, its data.
        let name = one
            .windows(5)
            .position(|bytes| bytes == [1, 0, 0, 0, b'b'])
            .unwrap();
        assert_eq!(one[..name], other[..name]);
        let [first, second, pieces, length] = [5, 9, 13, 17].map(|field| number(name + field));
        assert_eq!(
            [first, second, pieces],
            [long("ret;").len(), long("ret;").len(), 3]
        );
        let (data, after) = one[name + 21..].split_at(length);
        assert!(other.ends_with(after));
        assert!(data.len() < first / 10, "{}", data.len());

        let mut text = Vec::new();
        DeflateDecoder::new(data).read_to_end(&mut text).unwrap();
        let piece = &long("ret;").into_bytes()[..first / 3];
        assert_eq!(text[..2 * piece.len()], [piece, piece].concat());
        assert_eq!(text.len(), first + second);
    }
}
