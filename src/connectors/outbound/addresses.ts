import ipaddr from "ipaddr.js";
import { type AddressRange, isAddress, parseAddressRange } from "../../config/address-range.ts";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Decides which addresses connectors may reach. Loopback and private networks are permitted, since connectors often
 * run there.
 */
export interface AddressRules {
  /** @param address IPv4 or IPv6 as text; any other text is refused */
  refuses(address: string): boolean;
}

/** Addresses that serve no tools, and those at which clouds give credentials to any program on the machine. */
const REFUSED = ranges([
  "0.0.0.0/8", // "this network": Linux treats it as loopback
  "100.100.100.200", // Alibaba Cloud's metadata
  "168.63.129.16", // Azure's WireServer
  "169.254.0.0/16", // link-local; metadata of nearly every cloud
  "192.0.0.192", // Oracle Cloud's metadata
  "224.0.0.0/4", // multicast
  "255.255.255.255", // broadcast
  "::",
  "fe80::/10", // link-local
  "ff00::/8", // multicast
  "fd00:ec2::/32", // AWS: metadata, container credentials, resolver, time
  "fd00:42::42", // Scaleway's metadata
  "fd00:c1::a9fe:a9fe", // Oracle Cloud's metadata
  "fd20:ce::254", // Google Cloud's metadata
]);

/** IPv6 ranges whose last 32 bits are the IPv4 address that is finally reached. */
const WRAPPING = ranges([
  "::/96", // IPv4-compatible (RFC 4291, deprecated)
  "::ffff:0:0:0/96", // IPv4-translated (RFC 7915)
  "64:ff9b::/96", // NAT64 (RFC 6052)
  "64:ff9b:1::/48", // local-use NAT64 (RFC 8215), in the form that ends with the IPv4 address
]);
const SIX_TO_FOUR = ranges(["2002::/16"]);
const TEREDO = ranges(["2001::/32"]);

/** @param allow addresses and CIDR ranges that are permitted although they would be refused otherwise */
export function createAddressRules(allow: readonly string[]): AddressRules {
  const allowed = ranges(allow);
  return {
    refuses(text) {
      if (!isAddress(text)) return true;
      const address = ipaddr.process(text);
      if (isIn(address, allowed)) return false;
      return [address, ...wrapped(address)].some((each) => isIn(each, REFUSED) && !isIn(each, allowed));
    },
  };
}

/** The IPv4 addresses inside an IPv6 address, which a gateway or tunnel may unpack. */
function wrapped(address: Address): Address[] {
  if (!(address instanceof ipaddr.IPv6) || address.range() === "loopback") return [];
  const bytes = address.toByteArray();
  const found: number[][] = [];
  if (isIn(address, WRAPPING) || isIsatap(bytes)) found.push(bytes.slice(12));
  if (isIn(address, SIX_TO_FOUR)) found.push(bytes.slice(2, 6));
  // RFC 4380: the server's address, and the client's with every bit inverted.
  if (isIn(address, TEREDO))
    found.push(
      bytes.slice(4, 8),
      bytes.slice(12).map((byte) => byte ^ 0xff),
    );
  return found.map((four) => new ipaddr.IPv4(four));
}

/** RFC 5214: the interface identifier is 0000:5EFE or 0200:5EFE, followed by the IPv4 address. */
function isIsatap(bytes: readonly number[]): boolean {
  return ((bytes[8] ?? 0) & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

function isIn(address: Address, list: readonly AddressRange[]): boolean {
  return list.some(([range, bits]) => address.kind() === range.kind() && address.match(range, bits));
}

function ranges(texts: readonly string[]): AddressRange[] {
  return texts.map((text) => {
    const range = parseAddressRange(text);
    if (!range) throw new Error(`${text} is not an address or a CIDR range`);
    return range;
  });
}
