//! The LZF filter of h5py (number 32000), which the library for reading does not have.
//! Layout: LibLZF 3.6, `lzf_d.c`.

use hdf5_reader::error::Error;

/// The number under which the filter is registered.
pub(super) const ID: u16 = 32_000;

/// Undoes the compression. Three bytes stand for 264 at most, so the memory is bounded by `data`.
pub(super) fn decompress(data: &[u8]) -> Result<Vec<u8>, Error> {
    let cut = || Error::DecompressionError("LZF: the data are damaged".into());
    let mut out: Vec<u8> = Vec::new();
    let mut rest = data;
    let mut next = || -> Option<usize> {
        let (byte, others) = rest.split_first()?;
        rest = others;
        Some(usize::from(*byte))
    };
    while let Some(control) = next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(next().ok_or_else(cut)? as u8);
            }
            continue;
        }
        let mut length = control >> 5;
        if length == 7 {
            length += next().ok_or_else(cut)?;
        }
        let distance = ((control & 31) << 8 | next().ok_or_else(cut)?) + 1;
        let start = out.len().checked_sub(distance).ok_or_else(cut)?;
        // What is copied may be what this very copy has written.
        for i in start..start + length + 2 {
            out.push(out[i]);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_repeats_are_undone() {
        // "abc", then 9 bytes from 3 before: a copy that overlaps itself.
        assert_eq!(
            decompress(&[2, b'a', b'b', b'c', 0xe0, 0, 2]).unwrap(),
            b"abcabcabcabc"
        );
        assert_eq!(decompress(&[0, b'x', 0x20, 0]).unwrap(), b"xxxx");
        assert_eq!(decompress(&[]).unwrap(), b"");
        for damaged in [
            &[5, b'a'][..],
            &[0x20, 0],
            &[0, b'a', 0xe0],
            &[0, b'a', 0x20],
        ] {
            assert!(decompress(damaged).is_err(), "{damaged:?}");
        }
    }
}
