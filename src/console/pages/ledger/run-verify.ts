import { parseCheckpoints, type SignedCheckpoint } from "../../../ledger/proof/checkpoint.ts";
import { NoteError, parseVerifierKey } from "../../../ledger/proof/note.ts";
import type { TrustAnchors, Verification } from "../../../ledger/proof/verification.ts";
import { browserTools, missingHere } from "../../../ledger/verify/bundle/page/tools.ts";
import { addressOf, fetchAnswer } from "../../api/client.ts";
import { ApiProblem, offline } from "../../api/problem.ts";

/** Progress of a check. */
export type VerifyProgress =
  | { readonly step: "downloading"; readonly bytes: number }
  | { readonly step: "checking"; readonly bytes: number; readonly leaves: number };

/** What to check, and what is known from elsewhere. */
export interface VerifyRequest {
  /** RFC 3339; empty: no bound. */
  readonly from: string;
  readonly to: string;
  readonly trust: TrustAnchors;
}

const TELL_MS = 200;

/**
 * Fetches the Article 14 bundle of a period and checks it with the code of each bundle's `verify.html`. The page's
 * security policy permits no worker, so the check runs in slices between which the page stays responsive.
 *
 * @throws ApiProblem if the bundle is refused or cut off; the signal's reason if it aborts
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
      // Each entry is hashed at least once, so this counts entries and notices an abort.
      signal.throwIfAborted();
      if (data[0] === LEAF) leaves += 1;
      if (often()) tell({ step: "checking", bytes: bundle.size, leaves });
      return browserTools.sha256(data);
    },
  });
}

/** Prefix of a leaf's bytes when hashed; nodes have another (RFC 9162). */
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
    const detail = "The download of the bundle was interrupted, so nothing was checked.";
    throw new ApiProblem(0, { code: "offline", detail });
  }
}

/** A function that returns true at most once in `ms` milliseconds. */
function seldom(ms: number): () => boolean {
  let last = performance.now();
  return () => {
    const now = performance.now();
    if (now - last < ms) return false;
    last = now;
    return true;
  };
}

/** Pasted keys, one on each line. @throws NoteError */
export function parseKeys(text: string): TrustAnchors["keys"] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => parseVerifierKey(browserTools.sha256, line));
}

/** Pasted checkpoints, one after another. @throws NoteError */
export function parsePasted(text: string): readonly SignedCheckpoint[] {
  const unix = text.replaceAll("\r\n", "\n").trim();
  return unix === "" ? [] : parseCheckpoints(`${unix}\n`);
}

/** Why the pasted text is invalid; undefined if it is valid or empty. */
export function refusal(parse: (text: string) => unknown, text: string): string | undefined {
  try {
    parse(text);
    return undefined;
  } catch (error) {
    if (error instanceof NoteError) return `It could not be read: ${error.message}.`;
    throw error;
  }
}
