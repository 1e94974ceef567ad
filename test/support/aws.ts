/** Amazon's own formats, written from their documents, so that tests do not rely on the package that they test. */
import { createHash, createHmac } from "node:crypto";
import { crc32 } from "node:zlib";
import type { RecordedRequest } from "./recording-upstream.ts";

/** A frame of an `application/vnd.amazon.eventstream`, https://smithy.io/2.0/aws/amazon-eventstream.html. */
export function awsFrame(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const STRING = 7;
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([Buffer.byteLength(name)]),
        Buffer.from(name),
        Buffer.from([STRING]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(payload);
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const all = Buffer.concat([prelude, head, body]);
  const trailer = Buffer.alloc(4);
  trailer.writeUInt32BE(crc32(all));
  return Buffer.concat([all, trailer]);
}

/** An event of a stream of Bedrock. */
export function bedrockEvent(type: string, value: object): Buffer {
  const headers = { ":event-type": type, ":content-type": "application/json", ":message-type": "event" };
  return awsFrame(headers, JSON.stringify(value));
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();

/**
 * The `Authorization` header that a request must have (Signature Version 4,
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), given the headers that it
 * claims to sign.
 */
export function expectedAuthorization(
  { method, path, headers, body }: RecordedRequest,
  { id, secret, region }: { readonly id: string; readonly secret: string; readonly region: string },
): string {
  const signed = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? "")?.[1] ?? "";
  const time = headers["x-amz-date"] ?? "";
  const [pathname = "", query = ""] = path.split("?");
  const canonical = [
    method,
    // Every service but S3 encodes the encoded path once more.
    pathname.split("/").map(encodeURIComponent).join("/"),
    query,
    ...signed.split(";").map((name) => `${name}:${(headers[name] ?? "").trim().replace(/ +/g, " ")}`),
    "",
    signed,
    sha256(body),
  ].join("\n");
  const scope = `${time.slice(0, 8)}/${region}/bedrock/aws4_request`;
  const key = [region, "bedrock", "aws4_request"].reduce<Buffer>(
    hmac,
    hmac(`AWS4${secret}`, time.slice(0, 8)),
  );
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const signature = hmac(key, text).toString("hex");
  return `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
}
