import ipaddr from "ipaddr.js";

/**
 * An address and the number of its leading bits that count. IPv4-mapped IPv6 (`::ffff:a.b.c.d`) is stored as IPv4.
 */
export type AddressRange = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

const MAPPED_BITS = 96;

/** Reads an IPv4 or IPv6 address, or a range in CIDR notation such as 169.254.0.0/16; undefined for anything else. */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [address = "", length, more] = text.split("/");
  if (more !== undefined || !isAddress(address)) return undefined;
  const parsed = ipaddr.parse(address);
  const most = parsed.kind() === "ipv4" ? 32 : 128;
  if (length !== undefined && !/^(?:0|[1-9]\d{0,2})$/.test(length)) return undefined;
  const bits = length === undefined ? most : Number(length);
  if (bits > most) return undefined;
  return parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress() && bits >= MAPPED_BITS
    ? [parsed.toIPv4Address(), bits - MAPPED_BITS]
    : [parsed, bits];
}

/**
 * Whether the text is IPv4 in four decimal parts, or IPv6. The library also accepts octal, hexadecimal and shortened
 * IPv4, and IPv6 with a zone, which is only meaningful on one machine.
 */
export function isAddress(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text) || (ipaddr.IPv6.isValid(text) && !text.includes("%"));
}
