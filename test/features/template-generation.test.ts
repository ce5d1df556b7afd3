import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const ALL = '/apis/apps/v1/namespaces/default/daemonsets';
const KEY = 'deprecated.daemonset.template.generation';
const daemonSet = (name: string, metadata: object = {}) => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name, ...metadata },
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
});
const MERGE = { 'content-type': 'application/merge-patch+json' };
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
const owns = (entry: any): boolean => entry.fieldsV1?.['f:metadata']?.['f:annotations']?.[`f:${KEY}`] !== undefined;

// S-335: A DaemonSet counts its templates in an annotation that no update of a client can set.
// Compat Writing, P2, yes: a DaemonSet counts its templates in annotation `deprecated.daemonset.template.generation`:
//   at least 1, not taken from updates, 400 for what is no number
test('a DaemonSet counts its templates in an annotation, which is the server’s alone', async () => {
  const { json: created } = await server.request('POST', ALL, { body: daemonSet('d') });
  assert.deepEqual(created.metadata.annotations, { [KEY]: '1' });
  assert.deepEqual(created.metadata.managedFields.map(owns), [true]);
  const steps: [string, object, string, number][] = [
    ['another label changes nothing', { metadata: { labels: { x: 'y' } } }, '1', 1],
    ['another number is not taken', { metadata: { annotations: { [KEY]: '7', x: 'y' } } }, '1', 1],
    ['it cannot be taken away', { metadata: { annotations: null } }, '1', 1],
    ['the spec beside the template does not count', { spec: { minReadySeconds: 5 } }, '1', 2],
    ['a new template does', { spec: { template: { metadata: { labels: { n: 'm' } } } } }, '2', 3],
  ];
  for (const [what, body, wanted, generation] of steps) {
    const { status, json, text } = await server.request('PATCH', `${ALL}/d`, { body, headers: MERGE });
    assert.equal(status, 200, text);
    assert.deepEqual([json.metadata.annotations[KEY], json.metadata.generation], [wanted, generation], what);
  }
  const body = { ...daemonSet('d'), status: { currentNumberScheduled: 3 } };
  const status = await server.request('PUT', `${ALL}/d/status`, { body });
  assert.equal(status.json.metadata?.annotations?.[KEY], '2', status.text);
});

// S-335
test('a DaemonSet may begin at a higher number, and at nothing that is none', async () => {
  const first = async (sent: string) => {
    const body = daemonSet(`d${sent.length}`, { annotations: { [KEY]: sent } });
    const { status, json } = await server.request('POST', `${ALL}?dryRun=All`, { body });
    return status === 201 ? json.metadata.annotations[KEY] : `${status} ${json.message}`;
  };
  const unread = 'DaemonSet in version "v1" cannot be handled as a DaemonSet: strconv.ParseInt: parsing';
  assert.equal(await first('12'), '12');
  assert.equal(await first('-4'), '1');
  assert.equal(await first('007'), '7');
  assert.equal(await first('x'), `400 ${unread} "x": invalid syntax`);
  assert.equal(await first('9223372036854775808'), `400 ${unread} "9223372036854775808": value out of range`);
});
