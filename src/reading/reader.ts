import type { Subprocess } from "bun";
import { isOutOfOpenFiles, openFilesReserve } from "../base/open-files/reserve.ts";
import { FrameReader } from "./frames.ts";
import { errorOf, JobOverLimit, outOfOpenFiles, tookTooLong } from "./job-errors.ts";
import type { ReadingAnswer, ReadingProtocol } from "./protocol.ts";

/** Maximum size in bytes of a frame: the vectors of a document with 65,536 passages are the largest. */
const MOST_ANSWER_FRAME = 80 * 1024 * 1024;
/** Maximum size in bytes of an answer. The longest possible text produces about 150 MB. */
const MOST_ANSWER = 384 * 1024 * 1024;
/** Maximum number of characters of standard error kept for the log, until the process is ready. */
const MOST_STDERR = 2_000;

/** How long a process may take to start: a hundred times as long as usual. */
const START_MS = 30_000;

type Child = Subprocess<"pipe", "pipe", "pipe">;

/** Descriptors needed briefly to start a process, including both ends of its three pipes. */
const PER_PROCESS = 8;

/** The process ended by itself before it could read any document: a fault of the program or the machine. */
export class ReaderFailed extends Error {
  override readonly name = "ReaderFailed";
}

const ENDS_PROCESS = "ends the process that reads it";

/**
 * The process ended by itself before it answered anything. The cause may be its document, or something else on the
 * machine, such as the OOM killer.
 */
export class ReaderGone extends JobOverLimit {
  constructor() {
    super(ENDS_PROCESS);
  }
}

interface ReadingTask<Result> {
  readonly answer: ReturnType<ReadingProtocol<never, Result>["openAnswer"]>;
  resolve(answer: ReadingAnswer<Result>): void;
  reject(error: Error): void;
}

/**
 * A process that reads input from outside, one item at a time (`process.ts`), for one caller at a time. It has no
 * environment variables of this process and only its three descriptors, and ends however this process ends, because
 * its standard input closes.
 */
export class ReaderProcess<Request, Result> {
  readonly #protocol: ReadingProtocol<Request, Result>;
  readonly #child: Child;
  readonly #ready = Promise.withResolvers<void>();
  #task: ReadingTask<Result> | null = null;
  #received = 0;
  #stderr = "";
  #isReady = false;
  #isEnded = false;
  /** Why it was ended, if there was a reason. */
  #cause: Error | undefined;

  /**
   * `command`: the program to start. @throws Problem 429 `rate_limited` if no descriptors are free; Error if it
   * cannot be started
   */
  constructor(command: readonly string[], protocol: ReadingProtocol<Request, Result>) {
    this.#protocol = protocol;
    this.#child = start(command);
    // There may be no waiter to handle the rejection.
    this.#ready.promise.catch(() => {});
    const late = setTimeout(() => this.end(new ReaderFailed("a reading process did not start")), START_MS);
    this.#ready.promise.then(
      () => clearTimeout(late),
      () => clearTimeout(late),
    );
    void this.#listen();
  }

  /** Whether it can read another document. */
  get isUsable(): boolean {
    return !this.#isEnded;
  }

  get pid(): number {
    return this.#child.pid;
  }

  /**
   * Reads a document. The time limit starts when the process is ready.
   * @throws JobRefused for a document that cannot be read; JobOverLimit for one that exceeds its time or memory or
   *   ends the process (ReaderGone if there was no answer at all); ReaderFailed if the process cannot read at all
   */
  async read(request: Request, mostMs: number): Promise<Result> {
    await this.#ready.promise;
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const answer = await new Promise<ReadingAnswer<Result>>((resolve, reject) => {
        timer = setTimeout(() => this.end(tookTooLong(mostMs)), mostMs);
        this.#received = 0;
        this.#task = { answer: this.#protocol.openAnswer(), resolve, reject };
        if (this.#isEnded) reject(this.#cause ?? new ReaderGone());
        else void this.#send(request);
      });
      if (answer.isLast) this.end();
      if ("result" in answer) return answer.result;
      const { failure } = answer;
      throw failure.isOverLimit ? new JobOverLimit(failure.message) : errorOf(failure);
    } finally {
      clearTimeout(timer);
      this.#task = null;
    }
  }

  /** Kills the process at once. A running read fails with `error`. */
  end(error?: Error): void {
    this.#isEnded = true;
    this.#cause ??= error;
    this.#child.kill("SIGKILL");
  }

  /** Resolves when the process has exited. */
  async ended(): Promise<void> {
    await this.#child.exited;
  }

  async #send(request: Request): Promise<void> {
    try {
      for (const bytes of this.#protocol.encodeRequest(request)) {
        // A write that cannot be finished at once is a promise, which is rejected if the process ends meanwhile.
        await this.#child.stdin.write(bytes);
        await this.#child.stdin.flush();
      }
    } catch {
      // The process is gone. Waiters are notified when its output ends.
      this.end();
    }
  }

  async #listen(): Promise<void> {
    const frames = new FrameReader(MOST_ANSWER_FRAME);
    const stderr = this.#keepStderr();
    try {
      for await (const bytes of this.#child.stdout) {
        for (const body of frames.push(bytes)) this.#take(body);
        this.#received += bytes.length;
        if (this.#received > MOST_ANSWER) break;
      }
    } catch (error) {
      this.end(new ReaderFailed("a reading process sent an invalid answer", { cause: error }));
    }
    // By now its output has been read completely, including any report that memory ran out.
    this.end();
    await stderr;
    this.#lose();
  }

  #take(body: Uint8Array): void {
    if (!this.#isReady) {
      this.#isReady = true;
      this.#ready.resolve();
      return;
    }
    const answer = this.#task?.answer.push(body);
    if (answer) this.#task?.resolve(answer);
  }

  /** The process is gone: pending requests fail. */
  #lose(): void {
    if (!this.#isReady)
      this.#ready.reject(this.#cause ?? new ReaderFailed(`a reading process did not start: ${this.#stderr}`));
    const gone = this.#received === 0 ? new ReaderGone() : new JobOverLimit(ENDS_PROCESS);
    this.#task?.reject(this.#cause ?? gone);
  }

  async #keepStderr(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of this.#child.stderr) {
      // Later output might quote a document.
      if (!this.#isReady) this.#stderr = (this.#stderr + decoder.decode(bytes)).slice(-MOST_STDERR);
    }
  }
}

function start(command: readonly string[]): Child {
  try {
    return openFilesReserve.lend(PER_PROCESS, () =>
      Bun.spawn([...command], {
        // Sends no crash reports. The rest of the environment may contain secrets.
        env: { DO_NOT_TRACK: "1" },
        cwd: "/",
        stdin: "pipe",
        stdout: "pipe",
        stderr: "pipe",
      }),
    );
  } catch (error) {
    throw isOutOfOpenFiles(error) ? outOfOpenFiles() : error;
  }
}
