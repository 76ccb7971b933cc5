//! Pipes and other streams: without a size, and read once.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::{ReadFault, recognise};

/// Returns whether the path leads to a pipe. A pipe can be read once only.
pub fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// All bytes of a stream, which has no size that could be compared with what a header says.
///
/// # Errors
/// The stream's own faults. A stream that begins as no snapshot does is refused at its beginning, because it may
/// have no end.
pub fn read_stream(stream: &mut impl Read) -> Result<Vec<u8>, ReadFault> {
    /// Bytes by which it is judged.
    const BEGINNING: u64 = 1 << 16;
    let mut bytes = vec![];
    stream.take(BEGINNING).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == BEGINNING {
        recognise::check_beginning(&bytes)?;
        // Vectors take what memory there is, or tell that there is none.
        loop {
            let more = bytes.len();
            let room = bytes.try_reserve_exact(more);
            room.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            if stream.take(more as u64).read_to_end(&mut bytes)? < more {
                break;
            }
        }
    }
    Ok(bytes)
}
