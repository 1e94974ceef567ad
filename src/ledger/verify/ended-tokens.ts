import { idTime, idTimeOf } from "../../base/ids.ts";
import type { VerifiedEntryFields } from "./form.ts";
import type { VerificationReport } from "./report.ts";
import type { TreePosition } from "./walk.ts";

/**
 * Maximum number of revoked tokens that are kept in memory. If a ledger has more, the later ones are not compared.
 */
const KEPT = 100_000;
/** A request that was authenticated before the revocation was on disk may be recorded after it. */
const MARGIN_MS = 60_000;
/** Refusals name the token that was refused. */
const DONE = new Set(["allowed", "succeeded"]);

/**
 * Finds what a token did in requests and tasks that began after its revocation: the server was misled by a row that
 * somebody had restored. The ids of requests and tasks contain the time at which they began.
 */
export class EndedTokenCheck {
  readonly #report: VerificationReport;
  /** By actor, the revocation and the first `idTime` that is too late. */
  readonly #ended = new Map<string, { readonly seq: number; readonly from: string }>();

  constructor(report: VerificationReport) {
    this.#report = report;
  }

  /** MUST be called with each step, in order. */
  take({ entry }: TreePosition): void {
    if (!entry) return;
    const { seq, actor, phase, outcome, task, request_id: request } = entry;
    const ended = this.#ended.get(actor);
    const began = task ?? request;
    if (ended && began !== undefined && phase !== "outcome" && DONE.has(outcome)) {
      if (idTime(began) >= ended.from) {
        this.#report.tampered(
          "reference_differs",
          `Entry ${seq} names ${actor}, which entry ${ended.seq} had revoked before: it is based on data that somebody had changed.`,
          seq,
        );
      }
    }
    this.#keep(entry);
  }

  #keep({ seq, ts, action, outcome, detail }: VerifiedEntryFields): void {
    const { token } = detail ?? {};
    if (action !== "token.revoke" || outcome !== "succeeded" || typeof token !== "string") return;
    if (this.#ended.size >= KEPT || this.#ended.has(`token:${token}`)) return;
    this.#ended.set(`token:${token}`, { seq, from: idTimeOf(Date.parse(ts) + MARGIN_MS) });
  }
}
