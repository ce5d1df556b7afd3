import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBase64 } from '../../../apimachinery/src/meta/base64.ts';
import { createAuthority, createSigningRequest } from '../../../apiserver/src/auth/certificate-authority.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import {
  type AuthorityPair,
  authorityStep,
  bundleOf,
  isPublished,
  newValidity,
  readAuthorities,
  writeAuthorities,
} from './peer-authority.ts';
import { NODE_CLAIM, peerRequestRefusal } from './peer-request.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = Date.UTC(2030, 0, 1);
const made = (daysAgo: number) => newValidity(NOW - daysAgo * DAY);

for (const [name, held, wanted] of [
  ['nothing is held', {}, 'make-current'],
  ['one is young', { current: made(1) }, 'rest'],
  ['one has a month left', { current: made(60) }, 'make-next'],
  ['the next one was published a moment ago', { current: made(61), next: made(0) }, 'rest'],
  ['the next one was published an hour ago', { current: made(61), next: made(1 / 24) }, 'promote'],
  ['one has expired', { current: made(90) }, 'make-current'],
  ['one has expired, and the next one was just made', { current: made(90), next: made(0) }, 'promote'],
  ['one is lost, and the next one is there', { next: made(0) }, 'promote'],
  ['the next one has expired', { current: made(70), next: made(90) }, 'make-next'],
] as const) {
  // S-284: Two replicas of `peer-certificates` make one authority; it is replaced without a node losing its
  //   certificate; a lost or garbled Secret heals.
  test(`what to do with the authority when ${name}: ${wanted}`, () => {
    const step = authorityStep(held, NOW);
    assert.equal(step.type, wanted);
    if (step.type === 'rest') assert.ok(step.ms > 0 && step.ms <= HOUR, `${step.ms}`);
  });
}

const clock = createFakeClock(NOW);
const authority = (daysAgo: number): Promise<AuthorityPair> => createAuthority(clock, `ca-${daysAgo}`, made(daysAgo));

test('what is written into the Secret is read again; what is no text or not whole is left out', async () => {
  const [current, next] = [await authority(60), await authority(0)];
  assert.deepEqual(readAuthorities(writeAuthorities({ current, next })), { current, next });
  assert.deepEqual(readAuthorities(undefined), {});
  const { 'tls.key': key = '', ...rest } = writeAuthorities({ current, next });
  assert.deepEqual(readAuthorities(rest), { next });
  assert.deepEqual(readAuthorities({ 'tls.crt': '/w==', 'tls.key': key }), {});
  assert.deepEqual(readAuthorities({ 'tls.crt': '%', 'tls.key': key }), {});
});

// S-284
test('the list holds what signs, what will sign, and what was published and has not expired; never without bound', async () => {
  const [lost, current, next, over] = [await authority(5), await authority(1), await authority(0), await authority(91)];
  const list = bundleOf({ current, next }, `no pem\n${lost.certificate}${over.certificate}${current.certificate}`, NOW);
  assert.equal(list, current.certificate + next.certificate + lost.certificate);
  assert.equal(bundleOf({ current, next }, list, NOW), list, 'it rests');
  assert.ok(isPublished(next, list) && !isPublished(over, list));
  assert.ok(!list.includes('PRIVATE'));
  const many = await Promise.all(Array.from({ length: 10 }, (_, at) => authority(at + 2)));
  const full = bundleOf({ current }, many.map(({ certificate }) => certificate).join(''), NOW);
  assert.equal(full.match(/BEGIN CERTIFICATE/g)?.length, 8);
  assert.ok(isPublished(current, full) && isPublished(many[0]!, full) && !isPublished(many[9]!, full), 'oldest go');
});

const AGENT = 'system:serviceaccount:kubevirt:coracle-agent';
const USAGES = ['digital signature', 'client auth'];
const claim = (...nodes: string[]) => ({ [NODE_CLAIM]: nodes });
const node = (name: string) => ({ username: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] });

for (const [name, subject, spec, reason] of [
  ['a node, for itself', {}, node('n1'), undefined],
  ['a node, for another', {}, node('n2'), 'RequesterIsAnotherNode'],
  ['a name like that of a node, outside of its group', {}, { username: 'system:node:n1' }, 'RequesterIsNoAgent'],
  ['the agent of that node', {}, { username: AGENT, extra: claim('n1') }, undefined],
  ['the agent of another node', {}, { username: AGENT, extra: claim('n2') }, 'RequesterIsAnotherNode'],
  ['an agent of two nodes', {}, { username: AGENT, extra: claim('n1', 'n2') }, 'RequesterIsAnotherNode'],
  ['an agent whose token names no node', {}, { username: AGENT }, 'RequesterNamesNoNode'],
  ['an agent whose claim is empty', {}, { username: AGENT, extra: claim() }, 'RequesterNamesNoNode'],
  [
    'an account of that name elsewhere',
    {},
    { username: 'system:serviceaccount:default:coracle-agent', extra: claim('n1') },
    'RequesterIsNoAgent',
  ],
  ['another account on that node', {}, { username: `${AGENT}-2`, extra: claim('n1') }, 'RequesterIsNoAgent'],
  ['an administrator', {}, { username: 'admin', groups: ['system:masters'] }, 'RequesterIsNoAgent'],
  ['nobody', {}, {}, 'RequesterIsNoAgent'],
  ['another common name', { commonName: 'kubernetes-admin' }, node('n1'), 'NotAPeerRequest'],
  ['no node name', { commonName: 'system:node:' }, node(''), 'NotAPeerRequest'],
  ['a node name with a slash', { commonName: 'system:node:a/b' }, node('a/b'), 'NotAPeerRequest'],
  ['another group', { organizations: ['system:masters'] }, node('n1'), 'NotAPeerRequest'],
  ['one more group', { organizations: ['system:nodes', 'system:masters'] }, node('n1'), 'NotAPeerRequest'],
  ['the usage of servers', {}, { ...node('n1'), usages: ['digital signature', 'server auth'] }, 'NotAPeerRequest'],
  ['one more usage', {}, { ...node('n1'), usages: [...USAGES, 'cert sign'] }, 'NotAPeerRequest'],
  ['no request', {}, { ...node('n1'), request: 'eA==' }, 'NotAPeerRequest'],
  ['no base64', {}, { ...node('n1'), request: '%' }, 'NotAPeerRequest'],
] as const) {
  // S-285: A node gets a peer certificate of its own name, and nobody gets another.
  test(`a request for n1 by ${name}: ${reason ?? 'may be signed'}`, async () => {
    const { request } = await createSigningRequest({
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
      ...(subject as object),
    });
    const refusal = peerRequestRefusal(
      {
        spec: {
          request: encodeBase64(new TextEncoder().encode(request)),
          signerName: 's',
          usages: USAGES,
          ...(spec as object),
        },
      },
      AGENT,
    );
    assert.equal(refusal?.reason, reason, refusal?.message ?? 'it is not refused');
  });
}
