import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalUuid, legacyFirmwareUuid, uuidV5 } from './firmware-identity.ts';
import { sha1 } from './sha1.ts';

const hex = (bytes: Uint8Array): string => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

describe('sha1()', () => {
  it('agrees with the platform on any input', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        assert.equal(hex(sha1(bytes)), createHash('sha1').update(bytes).digest('hex'));
      }),
      { numRuns: 200 },
    );
  });
});

describe('uuidV5()', () => {
  it('gives the UUID of the RFC 4122 erratum for www.example.com in the DNS namespace', () => {
    assert.equal(
      uuidV5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com'),
      '2ed6657d-e927-568b-95e1-2665a8aea6a2',
    );
  });
});

describe('legacyFirmwareUuid()', () => {
  // S-050
  it('is a version 5 UUID of the name alone', () => {
    assert.equal(legacyFirmwareUuid('x'), uuidV5('6a1a24a1-4061-4607-8bf4-a3963d0c5895', 'x'));
    assert.notEqual(legacyFirmwareUuid('x'), legacyFirmwareUuid('y'));
    assert.match(legacyFirmwareUuid('x'), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe('canonicalUuid()', () => {
  const one = '5d307ca9-b3ef-428c-8861-06e72d69f223';
  for (const text of [
    one,
    one.toUpperCase(),
    one.replaceAll('-', ''),
    `{${one}}`,
    `urn:uuid:${one}`,
    ` URN:UUID:${one.toUpperCase()} `,
  ])
    it(`reads ${JSON.stringify(text)}`, () => assert.equal(canonicalUuid(text), one));
  it('leaves what is no UUID, but for its case', () => {
    assert.equal(canonicalUuid(' My-Machine '), 'my-machine');
    assert.equal(canonicalUuid(`${one}0`), `${one}0`);
    assert.equal(canonicalUuid(''), '');
  });
});
