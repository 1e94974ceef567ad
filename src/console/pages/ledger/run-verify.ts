import { parseCheckpoints, type SignedCheckpoint } from "../../../ledger/proof/checkpoint.ts";
import { NoteError, parseVerifierKey } from "../../../ledger/proof/note.ts";
import type { Trust, Verification } from "../../../ledger/proof/verification.ts";
import { browserTools, missingHere } from "../../../ledger/verify/bundle/page/tools.ts";
import { addressOf, fetchAnswer } from "../../api/client.ts";
import { ApiProblem, offline } from "../../api/problem.ts";

/** How far a check has got. */
export type VerifyProgress =
  | { readonly step: "downloading"; readonly bytes: number }
  | { readonly step: "checking"; readonly bytes: number; readonly leaves: number };

/** What is to be checked, and what is known of it from elsewhere. */
export interface VerifyRequest {
  /** RFC 3339; empty: from the beginning, or to the end. */
  readonly from: string;
  readonly to: string;
  readonly trust: Trust;
}

const TELL_MS = 200;

/**
 * Fetches the Article 14 bundle of a time and checks it here, with what `verify.html` in each bundle runs. A worker would need
 * a script's address that the page's policy trusts, and it trusts none: the check works in slices, between which the page goes on.
 *
 * @throws ApiProblem where the bundle is refused or breaks off; the signal's reason where that aborts
 */
export async function runVerify(
  { from, to, trust }: VerifyRequest,
  tell: (progress: VerifyProgress) => void,
  signal: AbortSignal,
): Promise<Verification> {
  const missing = missingHere();
  if (missing !== null) throw new ApiProblem(0, { code: "browser_too_old", detail: missing });
  const { verifyBundle } = await import("../../../ledger/verify/bundle/verify.ts");
  const bundle = await fetchBundle({ from, to }, (bytes) => tell({ step: "downloading", bytes }), signal);
  const often = seldom(TELL_MS);
  let leaves = 0;
  tell({ step: "checking", bytes: bundle.size, leaves });
  return verifyBundle(bundle, trust, {
    ...browserTools,
    sha256(data) {
      // Every entry is hashed at least once: here it is counted, and here a check that nobody waits for ends.
      signal.throwIfAborted();
      if (data[0] === LEAF) leaves += 1;
      if (often()) tell({ step: "checking", bytes: bundle.size, leaves });
      return browserTools.sha256(data);
    },
  });
}

/** What a leaf's bytes begin with when they are hashed, and no node's do (RFC 9162). */
const LEAF = 0;

async function fetchBundle(
  period: { readonly from: string; readonly to: string },
  tell: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const address = addressOf("/v1/ledger", {}, { format: "article14", ...period });
  const { body } = await fetchAnswer("GET", address, { signal });
  if (!body) throw offline();
  const often = seldom(TELL_MS);
  let bytes = 0;
  const counted = body.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (often()) tell(bytes);
        controller.enqueue(chunk);
      },
    }),
  );
  try {
    return await new Response(counted).blob();
  } catch (error) {
    if (signal.aborted) throw error;
    const detail = "The bundle broke off on its way: nothing was checked.";
    throw new ApiProblem(0, { code: "offline", detail });
  }
}

/** True at most once in so many milliseconds. */
function seldom(ms: number): () => boolean {
  let last = performance.now();
  return () => {
    const now = performance.now();
    if (now - last < ms) return false;
    last = now;
    return true;
  };
}

/** Keys that were pasted, one a line. @throws NoteError */
export function parseKeys(text: string): Trust["keys"] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => parseVerifierKey(browserTools.sha256, line));
}

/** Checkpoints that were pasted, one after another. @throws NoteError */
export function parsePasted(text: string): readonly SignedCheckpoint[] {
  const unix = text.replaceAll("\r\n", "\n").trim();
  return unix === "" ? [] : parseCheckpoints(`${unix}\n`);
}

/** Why what was pasted is none; undefined where it is, or is empty. */
export function refusal(parse: (text: string) => unknown, text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof NoteError) return `It cannot be read: ${error.message}.`;
    throw error;
  }
}
