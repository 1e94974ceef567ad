import type { JSX } from "preact";

export type Tone = "plain" | "good" | "warn" | "bad" | "info";

const TONES: Readonly<Record<string, Tone>> = {
  queued: "plain",
  running: "info",
  awaiting_approval: "warn",
  succeeded: "good",
  failed: "bad",
  cancelled: "plain",
  denied: "bad",
  unknown: "warn",
  active: "good",
  stopped: "bad",
  archived: "plain",
  ready: "good",
  unreachable: "bad",
  disabled: "plain",
  pending: "warn",
  approved: "good",
  expired: "plain",
  withdrawn: "plain",
  allowed: "good",
  delivered: "good",
};

export function Badge({ tone, text }: { readonly tone: Tone; readonly text: string }): JSX.Element {
  return <span class={tone === "plain" ? "badge" : `badge badge-${tone}`}>{text}</span>;
}

/** An API status as a badge. The word carries the meaning; the colour only helps. */
export function Status({ status }: { readonly status: string }): JSX.Element {
  return <Badge tone={TONES[status] ?? "plain"} text={status.replaceAll("_", " ")} />;
}
