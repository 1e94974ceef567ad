/** A real browser, driven over its own debugging protocol (Chrome DevTools Protocol): a headless Chromium of this machine. */
import { tempDir } from "./process.ts";

/** Names under which systems install it. */
const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const LONGEST_START_MS = 30_000;

export interface Page {
  /** The value of an expression in the page; promises are waited for. */
  evaluate<T>(expression: string): Promise<T>;
  /** Does what a person does who picks a file. */
  choose(selector: string, file: string): Promise<void>;
  /** Addresses that the page has asked for, itself included. */
  readonly requests: readonly string[];
  /** What the browser complains of: errors, exceptions, what the page's policy forbids. */
  readonly complaints: readonly string[];
}

export interface Browser {
  /** Opens a page in a tab of its own that has no network. */
  open(url: string): Promise<Page>;
  close(): Promise<void>;
}

/** Undefined where this machine has none. */
export function findChromium(): string | undefined {
  for (const name of NAMES) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  return undefined;
}

/** @throws Error where there is none, or it does not start */
export async function startChromium(): Promise<Browser> {
  const program = findChromium();
  if (program === undefined) throw new Error(`there is no Chromium here: apt-get install chromium`);
  const profile = tempDir();
  const child = Bun.spawn(
    [
      program,
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-dev-shm-usage",
      "--remote-debugging-port=0",
      `--user-data-dir=${profile.path}`,
      "about:blank",
    ],
    { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );
  const connection = await connect(await addressOf(child.stderr));
  return {
    open: (url) => openPage(connection, url),
    async close() {
      connection.close();
      child.kill();
      await child.exited;
      profile.remove();
    },
  };
}

/** It says on its standard error where it listens. */
async function addressOf(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stderr.getReader();
  const decoder = new TextDecoder();
  const tooLong = setTimeout(() => void reader.cancel(), LONGEST_START_MS);
  let said = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`Chromium did not start: ${said.slice(-2_000)}`);
    said += decoder.decode(value, { stream: true });
    const found = /ws:\/\/\S+/.exec(said);
    if (!found) continue;
    clearTimeout(tooLong);
    // Whatever it says from now on must not fill the pipe.
    void (async () => {
      while (!(await reader.read()).done);
    })();
    return found[0];
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the protocol has hundreds of messages.
type Message = any;

interface Connection {
  send(method: string, params?: object, session?: string): Promise<Message>;
  listen(listener: (message: Message) => void): void;
  close(): void;
}

async function connect(address: string): Promise<Connection> {
  const socket = new WebSocket(address);
  const opened = Promise.withResolvers<void>();
  socket.addEventListener("open", () => opened.resolve());
  socket.addEventListener("error", () => opened.reject(new Error(`nobody answers at ${address}`)));
  await opened.promise;
  const waiting = new Map<number, PromiseWithResolvers<Message>>();
  const listeners: ((message: Message) => void)[] = [];
  let last = 0;
  socket.addEventListener("message", ({ data }) => {
    const message: Message = JSON.parse(String(data));
    const answered = waiting.get(message.id);
    if (!answered) {
      for (const listener of listeners) listener(message);
      return;
    }
    waiting.delete(message.id);
    if (message.error) answered.reject(new Error(message.error.message));
    else answered.resolve(message.result);
  });
  socket.addEventListener("close", () => {
    for (const { reject } of waiting.values()) reject(new Error("Chromium has ended"));
  });
  return {
    send(method, params = {}, session) {
      last += 1;
      const answered = Promise.withResolvers<Message>();
      waiting.set(last, answered);
      socket.send(JSON.stringify({ id: last, method, params, sessionId: session }));
      return answered.promise;
    },
    listen: (listener) => listeners.push(listener),
    close: () => socket.close(),
  };
}

async function openPage(connection: Connection, url: string): Promise<Page> {
  const { targetId } = await connection.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await connection.send("Target.attachToTarget", { targetId, flatten: true });
  const send = (method: string, params?: object) => connection.send(method, params, sessionId);
  const requests: string[] = [];
  const complaints: string[] = [];
  const loaded = Promise.withResolvers<void>();
  connection.listen(({ sessionId: from, method, params }) => {
    if (from !== sessionId) return;
    if (method === "Page.loadEventFired") loaded.resolve();
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
    if (method === "Log.entryAdded") complaints.push(params.entry.text);
    if (method === "Runtime.exceptionThrown") complaints.push(JSON.stringify(params.exceptionDetails));
  });
  for (const domain of ["Page", "Network", "Log", "Runtime", "DOM"]) await send(`${domain}.enable`);
  await send("Network.emulateNetworkConditions", {
    offline: true,
    latency: 0,
    downloadThroughput: 0,
    uploadThroughput: 0,
  });
  await send("Page.navigate", { url });
  await loaded.promise;
  return {
    requests,
    complaints,
    async evaluate(expression) {
      const { result, exceptionDetails } = await send("Runtime.evaluate", {
        expression,
        awaitPromise: true,
        returnByValue: true,
      });
      if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
      return result.value;
    },
    async choose(selector, file) {
      const { root } = await send("DOM.getDocument");
      const { nodeId } = await send("DOM.querySelector", { nodeId: root.nodeId, selector });
      await send("DOM.setFileInputFiles", { nodeId, files: [file] });
    },
  };
}
