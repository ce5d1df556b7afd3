/**
 * Two servers, one whose large writes another thread does, and requests to both: their answers, what they leave in the store and
 * their warnings have to be the same.
 */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { WriteElsewhere } from '../../packages/apiserver/src/endpoints/document-forms.ts';
import { PROTOBUF } from '../../packages/apiserver/src/kinds/protobuf/documents.ts';
import { protobufBody } from '../../packages/apiserver/src/kinds/protobuf/request-body.ts';
import type { RunStage } from '../../packages/apiserver/src/registry/stage-job.ts';
import { createLargeWork } from '../../packages/coracle/src/compose/large-work.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { type Answer, type InProcessServer, startServer } from './in-process-server.ts';

let work: ReturnType<typeof createLargeWork>;
/** Stages that the other thread has done. */
export let stages = 0;
/** Of those, how many show something. */
export let views = 0;
const runStage: RunStage = (job, client) => {
  stages++;
  if (job.stage === 'view') views++;
  return work.runStage(job, client);
};
/** Documents that it has written. */
export let written = 0;
const writeElsewhere: WriteElsewhere = (document, client) => {
  written++;
  return work.write(document, client);
};
const bodyDecoders = new Map([[PROTOBUF, protobufBody]]);
/** Its large writes are done by the other thread. */
export let elsewhere: InProcessServer;
export let here: InProcessServer;
/** Starts both servers before the tests of the file that calls this. */
export function useLargeServers(): void {
  before(async () => {
    work = createLargeWork({ patience: 600_000, idle: 600_000 });
    // What its start takes is no part of a request, which has a time limit.
    await work.read({ type: 'application/json', bytes: new TextEncoder().encode('{}') });
    // In protobuf the second of a create is bytes like any others: both write in the same one.
    const start = Date.now();
    const clock = { ...systemClock, now: () => start };
    elsewhere = await startServer({ runStage, writeElsewhere, defaultAdmission: true, bodyDecoders, clock });
    here = await startServer({ defaultAdmission: true, bodyDecoders, clock });
    for (const server of [elsewhere, here]) {
      await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', DEFINITION);
      await server.create('/api/v1/namespaces/default/serviceaccounts', {
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name: 'default' },
        // The volume of a token has another name in each server.
        automountServiceAccountToken: false,
      });
      await served(server);
    }
  });
  after(async () => {
    await Promise.all([elsewhere.stop(), here.stop()]);
    await work.close();
  });
}

export const CUSTOM = '/apis/large.example/v1/namespaces/default/things';
async function served(server: InProcessServer): Promise<void> {
  for (let at = 0; at < 2000 && (await server.request('GET', CUSTOM)).status !== 200; at++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** As few as make an object large. */
const MANY = 2000;
export const KEYS = 5200;
export const many = <T>(make: (at: number) => T, length = MANY): T[] => Array.from({ length }, (_, at) => make(at));
export const keys = (make: (at: number) => [string, unknown]): object => Object.fromEntries(many(make, KEYS));
export const spec = (containers: unknown, volumes: unknown = []): object => ({
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers, volumes } },
  },
});
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const schema = (more: object): object => ({
  openAPIV3Schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          open,
          list: {
            type: 'array',
            items: { type: 'object', properties: { a: { type: 'string', default: 'x' }, b: { type: 'integer' } } },
          },
          set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
          ...more,
        },
        'x-kubernetes-validations': [{ rule: "!has(self.set) || self.set[0] != 'bad'", message: 'not a good one' }],
      },
      status: open,
    },
  },
});
export const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.large.example' },
  spec: {
    group: 'large.example',
    names: { plural: 'things', singular: 'thing', kind: 'Thing' },
    scope: 'Namespaced',
    versions: [
      { name: 'v1', served: true, storage: true, subresources: { status: {} }, schema: schema({}) },
      {
        name: 'v2',
        served: true,
        storage: false,
        subresources: { status: {} },
        schema: schema({ more: { type: 'string', default: 'y' } }),
      },
    ],
  },
};

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body?: object | string | Uint8Array;
  readonly type?: string;
}

const NEW = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;

/** A text without what is new in each server. */
export const changing = (text: string): string => text.replaceAll(NEW, '').replaceAll(/resourceVersion\W+\d+/g, '');

/** Without what is new in each server. */
function plain(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(NEW, '');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !['uid', 'creationTimestamp', 'resourceVersion', 'time'].includes(key))
      .map(([key, member]) => [key, key === 'managedFields' ? inAnyOrder(plain(member)) : plain(member)]),
  );
}

/** Entries lie in the order of their times, which are new in each server. */
const inAnyOrder = (list: unknown): unknown =>
  Array.isArray(list) ? list.map((one) => JSON.stringify(one)).sort() : list;

/** What both servers answer. */
export async function both({ method, path, body, type = 'application/json' }: Ask): Promise<Answer> {
  const ask = (server: InProcessServer) =>
    server.request(method, path, { ...(body !== undefined && { body }), headers: { 'content-type': type } });
  const [there, locally] = [await ask(elsewhere), await ask(here)];
  assert.deepEqual(
    [there.status, there.headers['warning']],
    [locally.status, locally.headers['warning']],
    there.text.slice(0, 500),
  );
  if (changing(there.text) !== changing(locally.text)) assert.deepEqual(plain(there.json), plain(locally.json));
  return there;
}

/** As `both`, of a write that the other thread works on. */
export async function large(ask: Ask): Promise<Answer> {
  const before = stages;
  const answer = await both(ask);
  assert.ok(stages > before, 'nothing was done on the other thread');
  return answer;
}

export const pathOf = (resource: string): string => {
  const info = here.catalog.all().find((one) => one.resource === resource)!;
  const root = info.group === '' ? '/api/v1' : `/apis/${info.group}/${info.version}`;
  return `${root}${info.namespaced ? '/namespaces/default' : ''}/${resource}`;
};
export const kindOf = (resource: string): object => {
  const { group, version, kind } = here.catalog.all().find((one) => one.resource === resource)!;
  return { apiVersion: group === '' ? version : `${group}/${version}`, kind };
};
