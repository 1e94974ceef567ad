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
        hint={`Its tools are called after it, as github.search. Small letters, digits and single underscores, ${NAME_LENGTH} at most.`}
        value={name}
        change={changeName}
        error={errors.get("/name")}
      />
      <TextArea
        label="Scopes"
        isCode
        rows={2}
        placeholder="*"
        hint="Globs over its own tools' names, one a line, such as search_*. A tool outside of them is neither listed nor called. Empty: all."
        value={scopes}
        change={changeScopes}
        error={scopeError}
      />
    </>
  );
}
