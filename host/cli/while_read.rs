//! The standard output of a command whose reader may go.

use std::io::{self, Write};

/// An output that may lose its reader (`allpairs … | head`): from then on what is written to it goes
/// nowhere, and the work is done all the same.
pub(super) struct WhileRead<W>(pub(super) Option<W>);

impl<W: Write> WhileRead<W> {
    fn unless_closed<T>(
        &mut self,
        closed: T,
        action: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(out) = &mut self.0 else {
            return Ok(closed);
        };
        match action(out) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.0 = None;
                Ok(closed)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for WhileRead<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), Write::flush)
    }
}
