import { parseCheckpoints } from "../../../proof/checkpoint.ts";
import { NoteError, parseVerifierKey } from "../../../proof/note.ts";
import type { TrustAnchors, Verdict, Verification } from "../../../proof/verification.ts";
import { verifyBundle } from "../verify.ts";
import { element, make, type PageElement } from "./dom.ts";
import { browserTools, missingHere } from "./tools.ts";

const WORDS: Readonly<Record<Verdict, readonly [title: string, text: string]>> = {
  holds: ["Holds", "The bundle is consistent, and the signed checkpoint vouches for its entries."],
  tampered: [
    "Tampered with",
    "Something was changed, added or removed, before or after the bundle was made.",
  ],
  undecided: ["Cannot be decided", "Something needed for a verdict is missing."],
};

let bundle: (Blob & { readonly name: string }) | null = null;

/** The keys and checkpoints that the auditor pasted. @throws NoteError naming the field */
function pastedTrust(): TrustAnchors {
  const read = <T>(id: string, name: string, parse: (text: string) => T): T => {
    try {
      return parse(element(id).value);
    } catch (error) {
      throw error instanceof NoteError ? new NoteError(`${name}: ${error.message}`) : error;
    }
  };
  const keys = read("key", "The key", (text) =>
    text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => parseVerifierKey(browserTools.sha256, line)),
  );
  const checkpoints = read("checkpoint", "The checkpoint", (text) => {
    const unix = text.replaceAll("\r\n", "\n").trim();
    return unix === "" ? [] : parseCheckpoints(`${unix}\n`);
  });
  return { keys, checkpoints };
}

function choose(file: (Blob & { readonly name: string }) | undefined): void {
  if (!file) return;
  bundle = file;
  element("chosen").textContent = file.name;
  element("check").disabled = false;
  void check();
}

async function check(): Promise<void> {
  if (!bundle) return;
  const button = element("check");
  button.disabled = true;
  say(make("p", "busy", `Checking ${bundle.name} …`));
  try {
    show(await verifyBundle(bundle, pastedTrust(), browserTools));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    say(make("h2", "", "Not checked"), make("p", "", reason));
    element("result").className = "result undecided";
  } finally {
    button.disabled = false;
  }
}

function show({ verdict, findings, facts }: Verification): void {
  const [title, text] = WORDS[verdict];
  const list = make("ol", "findings");
  for (const { code, message } of findings) {
    list.append(make("li", "", message, " ", make("code", "", code)));
  }
  const said = make("dl", "");
  for (const { label, value } of facts) said.append(make("dt", "", label), make("dd", "", value));
  say(make("h2", "", title), make("p", "", text), ...(findings.length > 0 ? [list] : []), said);
  element("result").className = `result ${verdict}`;
}

function say(...content: PageElement[]): void {
  const result = element("result");
  result.hidden = false;
  result.className = "result";
  result.replaceChildren(...content);
}

const missing = missingHere();
if (missing !== null) {
  say(make("h2", "", "This browser cannot verify bundles"), make("p", "", missing));
  element("result").className = "result undecided";
} else {
  const drop = element("drop");
  element("file").addEventListener("change", () => choose(element("file").files?.[0]));
  element("check").addEventListener("click", () => void check());
  drop.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.className = "drop over";
  });
  drop.addEventListener("dragleave", () => {
    drop.className = "drop";
  });
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.className = "drop";
    choose(event.dataTransfer?.files?.[0]);
  });
  element("form").hidden = false;
}
