import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../../../parts/dialog.tsx";
import { plural } from "../../../parts/text.tsx";
import { refusalOf, sizeText, typeName, typeOf } from "./file-type.ts";
import { ScopeField, scopeError } from "./scope-field.tsx";

/** Asks for the scope before any file is sent, because the scope decides who can find them. */
export function AddFiles({
  files,
  scope: chosen,
  known,
  close,
  add,
}: {
  readonly files: readonly File[];
  readonly scope: string;
  readonly known: readonly string[];
  readonly close: () => void;
  readonly add: (files: readonly File[], scope: string) => void;
}): JSX.Element {
  const [scope, setScope] = useState(chosen);
  const [error, setError] = useState<string | undefined>(undefined);
  const readable = files.filter((file) => refusalOf(file) === undefined);

  return (
    <Dialog title={`Add ${plural(files.length, "file")} to the vault`} close={close}>
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          const wrong = scopeError(scope.trim());
          setError(wrong);
          if (wrong !== undefined || readable.length === 0) return;
          add(readable, scope.trim());
          close();
        }}
      >
        <ScopeField value={scope} change={setScope} known={known} error={error} />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
        <section class="vault-files" aria-label="Files" tabIndex={0}>
          <ul>
            {files.map((file, index) => (
              <FileLine key={index} file={file} />
            ))}
          </ul>
        </section>
        <div class="dialog-end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button-main" disabled={readable.length === 0}>
            Add {plural(readable.length, "document")}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function FileLine({ file }: { readonly file: File }): JSX.Element {
  const refusal = refusalOf(file);
  return (
    <li>
      <span class="break">{file.name}</span>
      {refusal === undefined ? (
        <span class="small muted">
          {typeName(typeOf(file.name) ?? "")}, {sizeText(file.size)}
        </span>
      ) : (
        <span class="small bad">Left out. {refusal}</span>
      )}
    </li>
  );
}
