import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { matchesAny } from "../../../base/glob.ts";
import type { Tool } from "../../../http/api.ts";
import { type AnswerOf, call } from "../../api/client.ts";
import { ApiProblem } from "../../api/problem.ts";
import { Confirm } from "../../parts/dialog.tsx";
import { TextArea } from "../../parts/field.tsx";
import { Card } from "../../parts/page.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { useAction } from "../../state/use-action.ts";
import { ArgumentInput } from "./argument-input.tsx";
import { argumentFields, readArguments, readObject, typedFrom } from "./schema.ts";
import { ToolAnswer } from "./tool-answer.tsx";
import { useFirstFault } from "./use-first-fault.ts";

type ToolCallAnswer = AnswerOf<"POST /v1/tools/:name/call">;
type Input = Readonly<Record<string, unknown>>;

const NONE: ReadonlyMap<string, string> = new Map();

/** Calls a tool with the arguments entered here. The call is real. */
export function TryTool({ tool }: { readonly tool: Tool }): JSX.Element {
  const { session } = useSession();
  const { name } = tool;
  const may = mayCall(session.scopes, name);
  return (
    <Card title="Try this tool">
      {may ? (
        <>
          <p class="note">
            This is a real call: it runs the tool, counts towards limits and budgets, and is recorded in the
            ledger with your name.
          </p>
          <TryForm tool={tool} />
        </>
      ) : (
        <p class="muted">
          Your token may not call it. It needs the scope <code>tools:{name}</code>, or a pattern that matches
          it.
        </p>
      )}
    </Card>
  );
}

function TryForm({ tool: { name, destructive, input_schema } }: { readonly tool: Tool }): JSX.Element {
  const fields = useMemo(() => argumentFields(input_schema), [input_schema]);
  const [typed, setTyped] = useState<ReadonlyMap<string, string>>(NONE);
  /** All arguments as JSON text; null while each has its own field. */
  const [json, setJson] = useState<string | null>(fields === null ? "{}" : null);
  const [errors, setErrors] = useState<ReadonlyMap<string, string>>(NONE);
  const [asked, setAsked] = useState<Input | null>(null);
  const [answer, setAnswer] = useState<ToolCallAnswer | null>(null);
  const [isLeft, setLeft] = useState(false);
  const abort = useRef<AbortController | null>(null);
  const action = useAction();
  const consent = useAction();

  /** The entered arguments; undefined if any are invalid, after showing the errors. */
  function read(): Input | undefined {
    if (json !== null || fields === null) {
      const given = readObject(json ?? "");
      setErrors("message" in given ? new Map([["", given.message]]) : NONE);
      return "message" in given ? undefined : given.input;
    }
    const given = readArguments(fields, typed);
    setErrors(given.errors);
    return given.errors.size > 0 ? undefined : given.input;
  }

  function submit(): void {
    const input = read();
    if (input === undefined) return;
    if (destructive) setAsked(input);
    else void send(input);
  }

  async function send(input: Input): Promise<void> {
    const own = new AbortController();
    abort.current = own;
    setAnswer(null);
    setLeft(false);
    await action.run(async () => {
      try {
        const options = { params: { name }, body: { arguments: { ...input } }, signal: own.signal };
        setAnswer(await call("POST /v1/tools/:name/call", options));
      } catch (error) {
        if (own.signal.aborted) setLeft(true);
        else {
          if (error instanceof ApiProblem) setErrors(argumentErrors(error));
          throw error;
        }
      }
    });
  }

  function toJson(): void {
    const { input } = readArguments(fields ?? [], typed);
    setJson(JSON.stringify(input, null, 2));
    setErrors(NONE);
  }

  function toFields(): void {
    const given = readObject(json ?? "");
    if (!("message" in given) && fields) setTyped(typedFrom(fields, given.input));
    setJson(null);
    setErrors(NONE);
  }

  const form = useFirstFault(errors);
  return (
    <form
      ref={form}
      class="stack try"
      aria-label={`Call ${name}`}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {json !== null || fields === null ? (
        <TextArea
          label="Arguments as JSON"
          isCode
          rows={6}
          value={json ?? ""}
          change={setJson}
          error={
            [...errors].map(([at, words]) => (at === "" ? words : `${at} ${words}`)).join("; ") || undefined
          }
        />
      ) : (
        fields.map((field) => (
          <ArgumentInput
            key={field.name}
            field={field}
            value={typed.get(field.name) ?? ""}
            change={(value) => setTyped((before) => new Map(before).set(field.name, value))}
            error={errors.get(field.name)}
          />
        ))
      )}
      {fields?.length === 0 && json === null && <p class="muted">It takes no arguments.</p>}
      <div class="row">
        <button type="submit" class={destructive ? "button-bad" : "button-main"} disabled={action.isBusy}>
          {action.isBusy ? "Waiting for the answer …" : "Call it"}
        </button>
        {action.isBusy && (
          <button type="button" onClick={() => abort.current?.abort()}>
            Stop waiting
          </button>
        )}
        {fields !== null && fields.length > 0 && (
          <button type="button" class="button-plain" onClick={json === null ? toJson : toFields}>
            {json === null ? "Edit as JSON" : "Edit as a form"}
          </button>
        )}
      </div>
      <ProblemNote problem={action.problem} />
      <div aria-live="polite">
        {isLeft && (
          <p class="note">
            The call was cancelled, and the tool was notified. Anything it has already done is not undone.
          </p>
        )}
        {answer && <ToolAnswer answer={answer} />}
      </div>
      {asked && (
        <Confirm
          title={`Call ${name}?`}
          confirm="Call it"
          action={consent}
          close={() => setAsked(null)}
          work={async () => {
            // The call may take a while; the page shows its progress.
            void send(asked);
          }}
        >
          <p>
            Its connector marks this tool as destructive: it may change or delete something that cannot be
            restored.
          </p>
          <pre class="code code-text">{JSON.stringify(asked, null, 2)}</pre>
        </Confirm>
      )}
    </form>
  );
}

/** The server's errors for single arguments, by name. */
function argumentErrors({ fields }: ApiProblem): ReadonlyMap<string, string> {
  return new Map(
    [...fields].flatMap(([path, message]) => {
      const [, mark, name, ...rest] = path.split("/");
      if (mark !== "arguments" || name === undefined) return [];
      const inside = rest.length > 0 ? `${rest.join("/")} ` : "";
      return [[name.replaceAll("~1", "/").replaceAll("~0", "~"), `${inside}${message}`]];
    }),
  );
}

function mayCall(scopes: readonly string[], tool: string): boolean {
  const mark = "tools:";
  const globs = scopes.filter((scope) => scope.startsWith(mark)).map((scope) => scope.slice(mark.length));
  return scopes.includes("admin") || matchesAny(globs, tool);
}
