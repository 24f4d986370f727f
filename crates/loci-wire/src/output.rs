//! Standard output, written by a thread of its own: a slow reader slows nobody down, a reader that has gone away
//! is noticed once, and everything is out before the process ends.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::Notify;

/// A queue of lines on their way out.
pub(crate) struct Output {
    lines: Sender<String>,
    writer: JoinHandle<io::Result<()>>,
    closed: Arc<Notify>,
}

impl Output {
    /// Starts writing to `sink`.
    pub(crate) fn new(mut sink: impl Write + Send + 'static) -> Self {
        let (lines, queue) = channel::<String>();
        let closed = Arc::new(Notify::new());
        let notice = Arc::clone(&closed);
        let writer = std::thread::spawn(move || {
            let result = (|| {
                while let Ok(line) = queue.recv() {
                    sink.write_all(line.as_bytes())?;
                    // What else is waiting goes out in the same breath.
                    while let Ok(more) = queue.try_recv() {
                        sink.write_all(more.as_bytes())?;
                    }
                    sink.flush()?;
                }
                sink.flush()
            })();
            notice.notify_one();
            result
        });
        Self { lines, writer, closed }
    }

    /// Queues a text; after the reader has gone away it is dropped.
    pub(crate) fn write(&self, text: String) {
        drop(self.lines.send(text));
    }

    /// Queues a value as one line.
    pub(crate) fn write_line(&self, value: &serde_json::Value) {
        let mut line = value.to_string();
        line.push('\n');
        self.write(line);
    }

    /// Resolves when the reader has gone away.
    pub(crate) fn closed(&self) -> Arc<Notify> {
        Arc::clone(&self.closed)
    }

    /// Waits until everything is out.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.lines);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer of standard output failed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Takes a few bytes at a time, like a slow pipe.
    #[derive(Clone, Default)]
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(7);
            self.0.lock().unwrap().extend(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn finish_writes_every_queued_line() {
        let sink = Slow::default();
        let output = Output::new(sink.clone());
        for n in 0..1_000 {
            output.write_line(&serde_json::json!({"n": n, "pad": "x".repeat(100)}));
        }
        output.finish().unwrap();
        let bytes = sink.0.lock().unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        assert_eq!(text.lines().count(), 1_000);
        assert!(text.ends_with("}\n"));
    }

    struct Gone;

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn closed_reader_is_reported_by_finish() {
        let output = Output::new(Gone);
        for _ in 0..100 {
            output.write("x\n".to_owned());
        }
        assert_eq!(output.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
