import type { JSX } from "preact";
import { Status } from "../../parts/badge.tsx";
import { Json } from "../../parts/code.tsx";
import { durationText } from "../../parts/text.tsx";
import type { ToolPiece } from "./activity.ts";

const SHOWN = 160;

/** A tool call in one line, with its complete arguments on demand. */
export function ToolCallView({
  call: { tool, arguments: input, result },
  meanwhile,
}: {
  readonly call: ToolPiece;
  /** Its status while it has no result. */
  readonly meanwhile: string;
}): JSX.Element {
  const text = input === null ? "arguments erased" : JSON.stringify(input);
  return (
    <details class="tool-call">
      <summary>
        <span class="tool-call-line">
          <code class="tool-call-name">{tool}</code>
          <span class="muted mono cut grow">{text.slice(0, SHOWN)}</span>
          {result ? (
            <>
              <span class="muted number small">{durationText(result.duration_ms)}</span>
              <Status status={result.status} />
            </>
          ) : (
            <Status status={meanwhile} />
          )}
        </span>
      </summary>
      {input === null ? (
        <p class="muted">The arguments were erased.</p>
      ) : (
        <Json value={input} label={`Arguments of ${tool}`} />
      )}
    </details>
  );
}
