/**
 * X.509 certificates (RFC 5280) for servers in tests. They are made when needed, because stored ones would expire.
 */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Authority {
  readonly name: string;
  readonly key: KeyObject;
  /** PEM. */
  readonly certificate: string;
}

/** The form that `Bun.serve` expects. Both PEM. */
export interface ServerCertificate {
  readonly key: string;
  readonly cert: string;
}

export interface Wanted {
  readonly names?: readonly string[];
  /** IPv4 addresses. */
  readonly addresses?: readonly string[];
  /** The last year in which it is valid. */
  readonly until?: number;
}

export function makeAuthority(name: string): Authority {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const constraints = extension("2.5.29.19", sequence(tlv(0x01, Buffer.of(0xff))));
  return { name, key: privateKey, certificate: signed(name, name, publicKey, privateKey, constraints, 2049) };
}

export function makeCertificate(authority: Authority, wanted: Wanted): ServerCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const alternatives = sequence(
    ...(wanted.names ?? []).map((name) => tlv(0x82, Buffer.from(name))),
    ...(wanted.addresses ?? []).map((address) => tlv(0x87, Buffer.from(address.split(".").map(Number)))),
  );
  const extensions = extension("2.5.29.17", alternatives);
  const until = wanted.until ?? 2049;
  return {
    cert: signed("server", authority.name, publicKey, authority.key, extensions, until),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function signed(
  subject: string,
  issuer: string,
  publicKey: KeyObject,
  signer: KeyObject,
  extensions: Buffer,
  until: number,
): string {
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.of(2))),
    tlv(0x02, Buffer.of(1)),
    algorithm,
    distinguished(issuer),
    sequence(time(2001, "0101000000Z"), time(until, "1231235959Z")),
    distinguished(subject),
    publicKey.export({ type: "spki", format: "der" }),
    tlv(0xa3, sequence(extensions)),
  );
  const signature = tlv(0x03, Buffer.concat([Buffer.of(0), sign("sha256", body, signer)]));
  const lines = sequence(body, algorithm, signature).toString("base64").replace(/.{64}/g, "$&\n").trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function distinguished(commonName: string): Buffer {
  return sequence(tlv(0x31, sequence(oid("2.5.4.3"), tlv(0x0c, Buffer.from(commonName)))));
}

function time(year: number, rest: string): Buffer {
  return tlv(0x17, Buffer.from(`${String(year).slice(-2)}${rest}`));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tlv(0x04, value));
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of others) {
    const groups = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tlv(0x06, Buffer.from(bytes));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...head), value]);
}
