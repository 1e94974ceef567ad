import { createPrivateKey, type KeyObject } from "node:crypto";
import { Type } from "typebox";
import { parseJson } from "../base/json-limits.ts";
import { validator } from "../base/schema.ts";

/** What a Google service account signs its requests for tokens with. */
export interface ServiceAccountKey {
  readonly clientEmail: string;
  readonly privateKey: KeyObject;
  readonly privateKeyId: string | undefined;
  /** Where tokens are issued. */
  readonly tokenUri: string;
}

const GOOGLE_TOKEN_URI = "https://oauth2.googleapis.com/token";

const fields = validator(
  Type.Object({
    client_email: Type.String({ pattern: "^[!-~]{3,320}$" }),
    private_key: Type.String({ maxLength: 16_384 }),
    private_key_id: Type.Optional(Type.String({ pattern: "^[!-~]{1,200}$" })),
    token_uri: Type.Optional(Type.String({ pattern: "^https?://[!-~]{1,2000}$" })),
  }),
);

/** Undefined if the text is not such a key. */
export function parseServiceAccountKey(text: string): ServiceAccountKey | undefined {
  try {
    const value = parseJson(text);
    if (!fields.is(value)) return undefined;
    const privateKey = createPrivateKey(value.private_key);
    const tokenUri = value.token_uri ?? GOOGLE_TOKEN_URI;
    if (privateKey.asymmetricKeyType !== "rsa" || !URL.canParse(tokenUri)) return undefined;
    const { client_email: clientEmail, private_key_id: privateKeyId } = value;
    return { clientEmail, privateKey, privateKeyId, tokenUri };
  } catch {
    // Neither JSON nor a key. The cause would quote parts of the text.
    return undefined;
  }
}
