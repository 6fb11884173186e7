// The stream of events, which comes back by itself. A page uses it, or the worker that all pages of a browser share.

/** Between two attempts to reach the studio. */
const PAUSE_MS = 1500;

/**
 * Listens until `close()` of what it returns is called. `hear(kind, data)` is called with "open" and "lost" when the connection
 * changes, and with the name and the text of each event. `again()` makes a new connection: this one is thought to be dead.
 */
export function listen(address, hear) {
  let source = null,
    retry = 0;
  const connect = () => {
    retry = 0;
    source = new EventSource(address);
    source.addEventListener("open", () => hear("open"));
    for (const kind of ["job", "gone"]) source.addEventListener(kind, (event) => hear(kind, event.data));
    source.addEventListener("error", () => {
      hear("lost");
      again();
    });
  };
  const again = () => {
    if (retry) return;
    source.close();
    retry = setTimeout(connect, PAUSE_MS);
  };
  connect();
  return {
    again,
    close() {
      source.close();
      clearTimeout(retry);
    },
  };
}
