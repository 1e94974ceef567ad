import { Samples } from "../statistics.ts";
import { type Connection, connect } from "./connection.ts";
import { Exchange } from "./exchange.ts";
import type { ExchangesJob, ExchangesResult } from "./jobs.ts";

/**
 * More requests than one process can make. A run that reaches this number says so instead of reporting a wrong
 * measurement.
 */
const ANSWERS_PER_SECOND = 200_000;
/** How long to wait for answers that are still outstanding at the end. */
const LAST_ANSWER_MS = 15_000;

/**
 * Sends requests to one server, or several in turn, over keep-alive connections, one at a time on each. In such a closed loop a slow
 * server gets fewer requests, so the latencies are those of a server that is as busy as it can be.
 *
 * Written on plain TCP, because the measured servers are faster than the usual tools: on one core of this class of
 * machine autocannon makes 29,000 requests a second to a bare server that answers 58,000, which would hide half of
 * the difference.
 */
export async function closedLoop(job: ExchangesJob): Promise<ExchangesResult> {
  const round = new Round(job);
  const clients = await Promise.all(
    Array.from({ length: job.connections }, (_, index) => Client.open(job, index, round)),
  );
  const begun = round.begin();
  for (const [index, client] of clients.entries()) {
    const after = (job.spreadMs * index) / clients.length;
    if (after === 0) client.ask();
    else setTimeout(() => client.ask(begun + after), after);
  }
  const impatience = setTimeout(
    () => {
      for (const client of clients) client.giveUp("no answer in time");
    },
    job.seconds * 1000 + job.spreadMs + LAST_ANSWER_MS,
  );
  await Promise.all(clients.map((client) => client.done));
  clearTimeout(impatience);
  return round.result(begun);
}

/** Totals over all connections of a round. */
class Round {
  readonly #seconds: number;
  readonly #durations: Samples;
  readonly #firsts: Samples;
  readonly #problems = new Map<string, number>();
  #deadline = 0;
  #answered = 0;
  #measured = 0;

  constructor({ seconds, expect }: ExchangesJob) {
    const capacity = Math.ceil(seconds * ANSWERS_PER_SECOND) + 1;
    this.#seconds = seconds;
    this.#durations = new Samples(capacity);
    this.#firsts = new Samples(expect.first === undefined ? 0 : capacity);
  }

  begin(): number {
    const now = performance.now();
    this.#deadline = now + this.#seconds * 1000;
    return now;
  }

  isOver(now: number): boolean {
    return now >= this.#deadline;
  }

  answered(startedAt: number, firstAt: number | null, now: number): void {
    this.#answered++;
    if (this.isOver(now)) return;
    this.#measured++;
    if (!this.#durations.add(now - startedAt)) this.failed("more answers than can be counted");
    if (firstAt !== null) this.#firsts.add(firstAt - startedAt);
  }

  failed(problem: string): void {
    this.#problems.set(problem, (this.#problems.get(problem) ?? 0) + 1);
  }

  result(begun: number): ExchangesResult {
    return {
      measured: this.#measured,
      answered: this.#answered,
      seconds: (this.#deadline - begun) / 1000,
      p50: this.#durations.percentile(50),
      p99: this.#durations.percentile(99),
      first50: this.#firsts.percentile(50),
      first99: this.#firsts.percentile(99),
      problems: [...this.#problems].map(([text, count]) => ({ text, count })),
    };
  }
}

/** One connection of a round. It ends at the deadline or at the first problem. */
class Client {
  readonly #requests: readonly Buffer[];
  readonly #paceMs: number;
  readonly #countsFromDue: boolean;
  readonly #round: Round;
  readonly #exchange: Exchange;
  readonly #end = Promise.withResolvers<void>();
  #connection: Connection | null = null;
  #startedAt = 0;
  #asked = 0;

  private constructor(job: ExchangesJob, index: number, round: Round) {
    const own = typeof job.request === "string" ? [job.request] : job.request[index % job.request.length];
    this.#requests = (own ?? []).map((request) => Buffer.from(request));
    this.#paceMs = job.paceMs ?? 0;
    this.#countsFromDue = job.countsFromDue ?? false;
    this.#round = round;
    this.#exchange = new Exchange(job.expect);
  }

  static async open(job: ExchangesJob, index: number, round: Round): Promise<Client> {
    const client = new Client(job, index, round);
    const ports = [job.port, ...(job.otherPorts ?? [])];
    client.#connection = await connect(ports[index % ports.length] ?? job.port, {
      body: (bytes) => client.#exchange.body(bytes),
      end: (status) => client.#answered(status),
      broken: (problem) => client.giveUp(problem),
    });
    return client;
  }

  /** Resolves when this connection has sent its last request. */
  get done(): Promise<void> {
    return this.#end.promise;
  }

  /** @param due when the request should have been sent */
  ask(due = performance.now()): void {
    const request = this.#requests[this.#asked++ % this.#requests.length];
    if (this.#connection === null || request === undefined) return;
    this.#exchange.begin();
    this.#startedAt = this.#countsFromDue ? due : performance.now();
    this.#connection.send(request);
  }

  giveUp(problem: string): void {
    if (this.#connection === null) return;
    this.#round.failed(problem);
    this.#close();
  }

  #answered(status: number): void {
    const now = performance.now();
    const problem = this.#exchange.problem(status);
    if (problem !== null) {
      this.giveUp(problem);
      return;
    }
    this.#round.answered(this.#startedAt, this.#exchange.firstAt, now);
    const due = this.#startedAt + this.#paceMs;
    if (this.#round.isOver(now)) this.#close();
    else if (due > now) setTimeout(() => this.ask(due), due - now);
    else this.ask(due);
  }

  #close(): void {
    this.#connection?.close();
    this.#connection = null;
    this.#end.resolve();
  }
}
