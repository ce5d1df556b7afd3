/** JSON that is bad for whoever reads it, whatever the route. */
import { gzipSync } from 'node:zlib';
import { type Body, json, map, repeated, utf8 } from './body.ts';

/** At most 3 MiB each. */
export function jsonBombs(): Body[] {
  return [
    json('deep lists', '['.repeat(1_500_000)),
    json('deep closed lists', map(`${'['.repeat(9_000)}${']'.repeat(9_000)}`)),
    json('deep objects', map(`${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`)),
    json('many keys', map(`{${repeated(80_000, (at) => `"k${at}":"v"`)}}`)),
    json('one key again and again', map(`{${repeated(200_000, () => '"k":"v"')}}`)),
    json(
      'many unknown fields',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},${repeated(120_000, (at) => `"f${at}":${at}`)}}`,
    ),
    json('a long list', map(`[${repeated(700_000, () => '1')}]`)),
    json('a long string', map(`{"a":"${'x'.repeat(2_900_000)}"}`)),
    json('escapes', map(`{"a":"${'\\u0000'.repeat(480_000)}"}`)),
    json('a long number', map(`{"a":${'9'.repeat(2_000_000)}}`)),
    json('many long numbers', map(`[${repeated(2_800, () => '9'.repeat(1000))}]`)),
    json('a long fraction', map(`{"a":0.${'1'.repeat(2_000_000)}}`)),
    json('a large exponent', map('{"a":1e999999999}')),
    json(
      'many labels',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","labels":{${repeated(60_000, (at) => `"l${at}":"v"`)}}}}`,
    ),
    json(
      'many bad labels',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","labels":{${repeated(60_000, (at) => `"l ${at}":" v"`)}}}}`,
    ),
    json(
      'many owners',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","ownerReferences":[${repeated(20_000, () => '{}')}]}}`,
    ),
    json(
      'many finalizers',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","finalizers":[${repeated(100_000, (at) => `"a b${at}"`)}]}}`,
    ),
    json(
      'managed fields of nonsense',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","managedFields":[${repeated(3000, () => '{"manager":"m","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:a":{"k:{":{}}}}')}]}}`,
    ),
    json(
      'prototype',
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"apiVersion":"v1","kind":"ConfigMap","metadata":{"__proto__":{"polluted":1},"name":"bomb"},"data":{"__proto__":"x"}}',
    ),
    {
      name: 'gzip of zeros',
      type: 'application/json',
      bytes: gzipSync(new Uint8Array(64 * 1024 * 1024)),
      headers: { 'content-encoding': 'gzip' },
    },
    {
      name: 'gzip of nonsense',
      type: 'application/json',
      bytes: utf8.encode('not gzip'),
      headers: { 'content-encoding': 'gzip' },
    },
  ];
}
