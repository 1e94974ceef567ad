import type { JSX } from "preact";
import { TextArea, TextField } from "../../parts/field.tsx";
import { NAME_LENGTH } from "./names.ts";

/** Fields of every kind of connector: its name, and the tools it may offer. */
export function CommonFields({
  name,
  scopes,
  changeName,
  changeScopes,
  errors,
}: {
  readonly name: string;
  readonly scopes: string;
  readonly changeName: (name: string) => void;
  readonly changeScopes: (scopes: string) => void;
  readonly errors: ReadonlyMap<string, string>;
}): JSX.Element {
  const scopeError = [...errors].find(([path]) => path === "/scopes" || path.startsWith("/scopes/"))?.[1];
  return (
    <>
      <TextField
        label="Name"
        required
        placeholder="github"
        hint={`The prefix of its tools, as in github.search. Lower-case letters, digits and single underscores, at most ${NAME_LENGTH}.`}
        value={name}
        change={changeName}
        error={errors.get("/name")}
      />
      <TextArea
        label="Scopes"
        isCode
        rows={2}
        placeholder="*"
        hint="Patterns of its tools' names, one per line, such as search_*. Other tools are neither listed nor called. Empty: all."
        value={scopes}
        change={changeScopes}
        error={scopeError}
      />
    </>
  );
}
