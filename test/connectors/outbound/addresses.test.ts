import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createAddressRules } from "../../../src/connectors/outbound/addresses.ts";

const rules = createAddressRules([]);

describe("refused", () => {
  test.each([
    "0.0.0.0",
    "0.1.2.3",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.0.0",
    "169.254.169.254",
    "169.254.170.23",
    "169.254.255.255",
    "192.0.0.192",
    "224.0.0.1",
    "239.255.255.255",
    "255.255.255.255",
    "::",
    "fe80::1",
    "FEBF::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd00:42::42",
    "fd00:c1::a9fe:a9fe",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "0:0:0:0:0:ffff:a9fe:a9fe",
    "::169.254.169.254",
    "::ffff:0:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::169.254.169.254",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
    // Teredo inverts every bit of the client's address: 5601:5601 is 169.254.169.254.
    "2001:0:808:808::5601:5601",
    "2001:db8::5efe:169.254.169.254",
    "2001:db8::200:5efe:169.254.169.254",
    // Texts that are not addresses are refused.
    "",
    "localhost",
    "fe80::1%eth0",
    "10.0.0.1%eth0",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "127.1",
  ])("%s", (address) => {
    expect(rules.refuses(address)).toBe(true);
  });
});

describe("accepted", () => {
  test.each([
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.199",
    "169.253.255.255",
    "169.255.0.0",
    "1.1.1.1",
    "223.255.255.255",
    "240.0.0.1",
    "::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec3::254",
    "2606:4700::1111",
    "::ffff:10.0.0.1",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
    "2001:db8::169.254.169.254",
  ])("%s", (address) => {
    expect(rules.refuses(address)).toBe(false);
  });
});

describe("allowed by configuration", () => {
  const allowing = createAddressRules(["169.254.169.254", "fe80::/64", "::ffff:169.254.1.0/120"]);

  test.each([
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::169.254.169.254",
    "fe80::1",
    "169.254.1.9",
  ])("%s", (address) => {
    expect(allowing.refuses(address)).toBe(false);
  });

  test.each(["169.254.169.253", "169.254.2.1", "64:ff9b::169.254.169.253", "fe80:0:0:1::1", "fd00:ec2::254"])(
    "and not %s",
    (address) => {
      expect(allowing.refuses(address)).toBe(true);
    },
  );

  test("an invalid range is not overlooked", () => {
    expect(() => createAddressRules(["169.254.0.0/40"])).toThrow("169.254.0.0/40 is not an address");
  });
});

test("an IPv4 address is treated the same in every notation", () => {
  const four = fc.oneof(
    fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)),
    fc.tuple(
      fc.constantFrom(0, 100, 127, 168, 169, 192, 224),
      fc.constantFrom(0, 63, 100, 254),
      fc.nat(255),
      fc.nat(255),
    ),
  );
  fc.assert(
    fc.property(four, (bytes) => {
      // As IPv6 these are :: (unspecified) and ::1 (loopback), which have their own rules.
      fc.pre(bytes.some((byte, index) => byte !== (index === 3 ? 1 : 0)));
      const hex = (list: readonly number[]) => Buffer.from(list).toString("hex").replace(/^.{4}/, "$&:");
      const refused = rules.refuses(bytes.join("."));
      const forms = [
        `::ffff:${hex(bytes)}`,
        `::ffff:0:${hex(bytes)}`,
        `::${hex(bytes)}`,
        `64:ff9b::${hex(bytes)}`,
        `64:ff9b:1::${hex(bytes)}`,
        `2002:${hex(bytes)}::1`,
        `2001:0:808:808:0:0:${hex(bytes.map((byte) => byte ^ 0xff))}`,
        `2001:0:${hex(bytes)}:0:0:f7f7:f7f7`,
        `2001:db8::5efe:${hex(bytes)}`,
      ];
      expect(forms.map((form) => [form, rules.refuses(form)])).toEqual(forms.map((form) => [form, refused]));
    }),
  );
});
