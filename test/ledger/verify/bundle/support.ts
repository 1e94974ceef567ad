import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { strToU8, unzipSync, zipSync } from "fflate";
import { BUNDLE_FILES, LISTED_FILES } from "../../../../src/ledger/article14/format/files.ts";
import { checkpointText, parseSignedCheckpoint } from "../../../../src/ledger/proof/checkpoint.ts";
import {
  formatNote,
  formatVerifierKey,
  keyIdOf,
  parseVerifierKey,
} from "../../../../src/ledger/proof/note.ts";
import type { TrustAnchors, Verification } from "../../../../src/ledger/proof/verification.ts";
import { sha256 } from "../../../../src/ledger/tree-hash.ts";
import { verifyBundle } from "../../../../src/ledger/verify/bundle/verify.ts";
import { tools } from "../../../../src/ledger/verify/tools.ts";

export const NOTHING_GIVEN: TrustAnchors = { keys: [], checkpoints: [] };

/** A bundle unpacked by code that did not pack it, to be changed and packed again. */
export class Unpacked {
  readonly files: Record<string, Uint8Array>;

  private constructor(files: Record<string, Uint8Array>) {
    this.files = files;
  }

  static async of(bundle: Blob): Promise<Unpacked> {
    return new Unpacked(unzipSync(new Uint8Array(await bundle.arrayBuffer())));
  }

  copy(): Unpacked {
    return new Unpacked({ ...this.files });
  }

  text(name: string): string {
    const bytes = this.files[name];
    if (!bytes) throw new Error(`there is no ${name}`);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  }

  write(name: string, content: string | Uint8Array): this {
    this.files[name] = typeof content === "string" ? strToU8(content) : content;
    return this;
  }

  edit(name: string, change: (text: string) => string): this {
    const before = this.text(name);
    const after = change(before);
    if (after === before) throw new Error(`${name} was not changed`);
    return this.write(name, after);
  }

  /** Changes the lines of a file. Lines come without their newline. */
  lines(name: string, change: (lines: string[]) => string[]): this {
    return this.edit(name, (text) =>
      change(text.split("\n").slice(0, -1))
        .map((line) => `${line}\n`)
        .join(""),
    );
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests change whatever a manifest has.
  manifest(change: (manifest: any) => void): this {
    const manifest = JSON.parse(this.text("manifest.json"));
    change(manifest);
    return this.write("manifest.json", `${JSON.stringify(manifest, null, 2)}\n`);
  }

  /** Updates the manifest to match the files and signs it, as somebody with a key can. */
  resign(signBytes: (bytes: Uint8Array) => Uint8Array): this {
    this.manifest(({ files }) => {
      for (const name of LISTED_FILES) {
        const bytes = this.files[name] ?? new Uint8Array(0);
        files[name] = { sha256: sha256(bytes).toHex(), size: bytes.length };
      }
    });
    const manifest = this.files["manifest.json"] ?? new Uint8Array(0);
    return this.write("manifest.sig", `${signBytes(manifest).toBase64()}\n`);
  }

  pack(): Blob {
    const ordered: Record<string, Uint8Array> = {};
    for (const name of BUNDLE_FILES) {
      const bytes = this.files[name];
      if (bytes) ordered[name] = bytes;
    }
    return new Blob([new Uint8Array(zipSync({ ...ordered, ...this.files }))]);
  }
}

/** Somebody with a key of their own, who re-signs a whole bundle with it. */
export class Forger {
  readonly #key: KeyObject;
  readonly publicKey: Uint8Array;

  constructor() {
    const pair = generateKeyPairSync("ed25519");
    this.#key = pair.privateKey;
    this.publicKey = new Uint8Array(pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32));
  }

  signBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(sign(null, bytes, this.#key));

  verifierKey(origin: string): string {
    return formatVerifierKey(sha256, origin, this.publicKey);
  }

  /** Replaces the real key and signatures with the forger's. */
  takeOver(bundle: Unpacked): Unpacked {
    const { checkpoint } = parseSignedCheckpoint(bundle.text("checkpoint.txt"));
    const { origin } = checkpoint;
    const text = checkpointText(checkpoint);
    const note = formatNote({
      text,
      signatures: [
        {
          name: origin,
          keyId: keyIdOf(sha256, origin, this.publicKey),
          signature: this.signBytes(strToU8(text)),
        },
      ],
    });
    return bundle
      .write("checkpoint.txt", note)
      .write("key.txt", `${this.verifierKey(origin)}\n`)
      .manifest((manifest) => {
        manifest.key = this.verifierKey(origin);
        manifest.key_changes = [];
      })
      .resign(this.signBytes);
  }
}

export function verify(bundle: Blob | Unpacked, trust: Partial<TrustAnchors> = {}): Promise<Verification> {
  const blob = bundle instanceof Unpacked ? bundle.pack() : bundle;
  return verifyBundle(blob, { ...NOTHING_GIVEN, ...trust }, tools);
}

/** Trust in a bundle's key, for an auditor who obtained it in another way. */
export function trustIn(...verifierKeys: string[]): Pick<TrustAnchors, "keys"> {
  return { keys: verifierKeys.map((key) => parseVerifierKey(sha256, key)) };
}

/** Each finding as `code` or `code seq`. */
export function codes({ findings }: Verification): string[] {
  return findings.map(({ code, seq }) => (seq === undefined ? code : `${code} ${seq}`));
}
