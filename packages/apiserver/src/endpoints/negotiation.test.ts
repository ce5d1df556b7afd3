import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseGoDuration } from '../../../apimachinery/src/meta/go-duration.ts';
import { type NegotiationScope, negotiate } from './negotiation.ts';
import { WarningRecorder } from './warnings.ts';

const MAIN: NegotiationScope & { readonly pretty: boolean } = { transforms: true, stream: false, pretty: false };
const pick = (accept: string | undefined, scope: Partial<typeof MAIN> = {}): string => {
  try {
    const { as, version, encoding, pretty } = negotiate(accept === undefined ? {} : { accept }, { ...MAIN, ...scope });
    return `${as} ${version} ${encoding}${pretty ? ' pretty' : ''}`;
  } catch (error) {
    return String((error as { code: number }).code);
  }
};

// Compat HTTP, P0, yes: Accept clauses in q order; one whose parameters cannot be met is passed over
// Compat Reading, P1, yes: metadata is protobuf where that is preferred: of one object, in lists and in watches, so
//   that what client-go lists equals what it gets
test('negotiate() takes the best clause that can be met', () => {
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
  const partial = 'application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
  const lists = partial.replace('Metadata;', 'MetadataList;');
  const cases: [string | undefined, Partial<typeof MAIN>, string][] = [
    [undefined, {}, 'object v1 json'],
    ['*/*', {}, 'object v1 json'],
    ['application/*', {}, 'object v1 json'],
    ['application/yaml', {}, 'object v1 yaml'],
    ['application/json;pretty=1', {}, 'object v1 json pretty'],
    ['application/vnd.kubernetes.protobuf,application/json', {}, 'object v1 json'],
    ['application/vnd.kubernetes.protobuf', {}, '406'],
    ['application/vnd.kubernetes.protobuf', { protobuf: 'all' }, 'object v1 protobuf'],
    ['application/vnd.kubernetes.protobuf', { protobuf: 'metadata' }, '406'],
    ['application/vnd.kubernetes.protobuf,application/json', { protobuf: 'all' }, 'object v1 json'],
    ['application/vnd.kubernetes.protobuf,application/yaml', { protobuf: 'all' }, 'object v1 protobuf'],
    [`${partial},application/json`, { protobuf: 'metadata' }, 'partial v1 protobuf'],
    [`${partial},${partial.replace('vnd.kubernetes.protobuf', 'json')}`, { protobuf: 'all' }, 'partial v1 protobuf'],
    [`${lists},${lists.replace('vnd.kubernetes.protobuf', 'json')}`, { protobuf: 'metadata' }, 'partial v1 protobuf'],
    ['application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io', { protobuf: 'all' }, '406'],
    ['application/vnd.kubernetes.protobuf;stream=watch', { protobuf: 'all', stream: true }, 'object v1 protobuf'],
    ['text/html', {}, '406'],
    ['application/json;q=0.1,application/yaml', {}, 'object v1 yaml'],
    ['application/json;q=0', {}, '406'],
    [`${table},application/json`, {}, 'table v1 json'],
    ['application/json;as=Table;v=v1beta1;g=meta.k8s.io', {}, 'table v1beta1 json'],
    ['application/json;as=Table;v=v2;g=meta.k8s.io,application/json', {}, 'object v1 json'],
    ['application/json;as=Chair;v=v1;g=meta.k8s.io', {}, '406'],
    ['application/json;v=v1;g=meta.k8s.io', {}, '406'],
    ['application/json;v=v1', {}, '406'],
    [table, { transforms: false }, '406'],
    ['application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io', {}, 'partial v1 json'],
    ['application/json;stream=watch', { stream: true }, 'object v1 json'],
    ['application/json;stream=watch', {}, 'object v1 json'],
    ['application/json;stream=wait', {}, '406'],
    ['application/yaml', { stream: true }, '406'],
    ['application/json', { pretty: true }, 'object v1 json pretty'],
  ];
  for (const [accept, scope, expected] of cases) {
    assert.equal(pick(accept, scope), expected, `${accept} ${JSON.stringify(scope)}`);
    assert.equal(pick(accept, scope), expected, `${accept} from the cache`);
  }
});

test('parseGoDuration() reads durations and nothing else', () => {
  assert.deepEqual(
    ['0', '1s', '1m30s', '100ms', '1.5h', '-2s'].map(parseGoDuration),
    [0, 1000, 90_000, 100, 5_400_000, -2000],
  );
  for (const text of ['', '5', 's', '1 s', '1d', 'NaN']) assert.equal(parseGoDuration(text), undefined, text);
});

// Compat HTTP, P0, yes: warnings: one header each, escaped, bounded
test('a warning is unique, escaped, printable and bounded', () => {
  const recorder = new WarningRecorder();
  assert.equal(recorder.header(), undefined);
  recorder.add('say "x\\y"');
  recorder.add('say "x\\y"');
  recorder.add('two\r\nlines');
  recorder.add('☃ é');
  assert.equal(recorder.header(), '299 - "say \\"x\\\\y\\"", 299 - "\u00e2\u0098\u0083 \u00c3\u00a9"');
  for (let i = 0; i < 100; i++) recorder.add(`${i} ${'z'.repeat(1000)}`);
  assert.ok(recorder.header()!.length < 5000);
});
