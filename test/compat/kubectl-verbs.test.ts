/**
 * Verbs of kubectl beside those of `cases/`, on the newest and the oldest version there is: that each does its work, or
 * says in one clear line why it cannot. Logs and forwarded ports are tried on a real guest where one can be booted.
 */
// test:full: every verb of kubectl.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf, type ControlPlaneProcess, createNamespace, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';
import { findKubectls, type Kubectl, type Outcome, runKubectl, startKubectl } from './kubectl.ts';

/** The tables' answers are those of versions people run today. */
const OLDEST = 27;
const known = findKubectls().filter(({ minor }) => minor >= OLDEST);
const newest = known.at(-1);
const oldest = known[0];
const skip = newest === undefined && `there is no kubectl 1.${OLDEST} or newer on PATH`;

let folder = '';
let controlPlane: ControlPlaneProcess | undefined;
let env: Record<string, string> = {};

before(async () => {
  if (newest === undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'coracle-verbs-'));
  controlPlane = await startProcess(join(folder, 'data'), { nodes: whyNoGuests() === undefined ? 1 : 0 });
  const editor = join(folder, 'editor.sh');
  writeFileSync(editor, '#!/bin/sh\nsed -i "s/replicas: 3/replicas: 4/" "$1"\n');
  chmodSync(editor, 0o700);
  env = {
    HOME: folder,
    PATH: process.env['PATH'] ?? '',
    KUBECONFIG: join(folder, 'data', 'kubeconfig'),
    EDITOR: editor,
  };
});
after(async () => {
  await controlPlane?.kill('SIGTERM');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

const run = (kubectl: Kubectl, words: string, input?: string): Promise<Outcome> =>
  runKubectl(kubectl, words.split(' '), { env, cwd: folder, ...(input !== undefined && { input }) });

const DEPLOYMENT = (replicas: number) =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'd' } },
      template: { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'i', image: 'i' }] } },
    },
  });
const roleIn = (namespace: string) =>
  JSON.stringify({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'reader', namespace },
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
  });

/** Words after kubectl, how it ends, what stands in its output; standard input. */
type Verb = readonly [words: string, code: number, output: RegExp, input?: string];

const VERBS: readonly Verb[] = [
  ['create -f -', 0, /deployment.apps\/d created/, DEPLOYMENT(2)],
  ['diff -f -', 1, /^\+ {2}replicas: 3$/m, DEPLOYMENT(3)],
  ['apply -f -', 0, /deployment.apps\/d configured/, DEPLOYMENT(3)],
  ['diff -f -', 0, /^$/, DEPLOYMENT(3)],
  ['edit deployment d', 0, /deployment.apps\/d edited/],
  ['get deployment d -o jsonpath={.spec.replicas}', 0, /^4$/],
  ['replace -f -', 0, /deployment.apps\/d replaced/, DEPLOYMENT(2)],
  [
    'patch deployment d --type=json -p [{"op":"replace","path":"/spec/replicas","value":1}]',
    0,
    /deployment.apps\/d patched/,
  ],
  ['rollout status deployment d --timeout=1s', 1, /timed out waiting for the condition/],
  ['rollout restart deployment d', 0, /deployment.apps\/d restarted/],
  ['rollout history deployment d', 0, /No rollout history found/],
  ['rollout pause deployment d', 0, /paused/],
  ['rollout resume deployment d', 0, /resumed/],
  ['rollout undo deployment d', 1, /no rollout history found/],
  ['scale deployment d --replicas=5', 0, /deployment.apps\/d scaled/],
  ['autoscale deployment d --min=1 --max=3', 0, /horizontalpodautoscaler.autoscaling\/d autoscaled/],
  ['set image deployment/d i=new', 0, /image updated/],
  ['set env deployment/d A=b', 0, /env updated/],
  ['set resources deployment/d --limits=cpu=1', 0, /resource requirements updated/],
  ['set serviceaccount deployment/d default', 0, /serviceaccount updated/],
  ['label deployment d x=y', 0, /labeled/],
  ['annotate deployment d x=y', 0, /annotated|annotate/],
  ['expose deployment d --port=80', 0, /service\/d exposed/],
  ['wait --for=jsonpath={.spec.replicas}=5 deployment/d --timeout=60s', 0, /condition met/],
  ['explain vm.spec.template.spec.domain.cpu --recursive', 0, /sockets\s+<integer>/],
  ['explain pod --recursive', 0, /containers\s+<\[\]Container>/],
  ['api-resources --api-group=discovery.k8s.io', 0, /endpointslices .*discovery.k8s.io\/v1 .*EndpointSlice/],
  ['api-versions', 0, /^kubevirt.io\/v1$/m],
  ['auth can-i create pods', 0, /^yes$/m],
  ['auth can-i --list', 0, /\*\.\* /],
  ['auth whoami', 0, /Username\s+kubernetes-admin/],
  ['auth reconcile -f -', 0, /role.rbac.authorization.k8s.io\/reader reconciled/, 'role'],
  ['create token default', 0, /^eyJ/],
  ['get --raw /api/v1/namespaces/default', 0, /"kind":"Namespace"/],
  ['run p --image=i --overrides={"spec":{"nodeSelector":{"no":"such"}}}', 0, /pod\/p created/],
  ['wait --for=condition=Ready pod/p --timeout=1s', 1, /timed out waiting for the condition/],
  ['wait --for=jsonpath={.status.phase}=Pending pod/p --timeout=60s', 0, /condition met/],
  ['logs p', 0, /^$/],
  ['exec p -- ls', 1, /pod p does not have a host assigned/],
  ['attach p', 1, /pod p does not have a host assigned/],
  ['cp p:/x x', 1, /pod p does not have a host assigned/],
  ['port-forward p 80', 1, /unable to forward port because pod is not running. Current status=Pending/],
  ['debug p --image=busybox --attach=false', 0, /Defaulting debug container name|/],
  ['events', 0, /LAST SEEN|No events found/],
  ['top pod', 1, /metrics not available/i],
  ['create quota q --hard=pods=1', 0, /resourcequota\/q created/],
  ['wait --for=jsonpath={.status.used.pods}=1 quota/q --timeout=60s', 0, /condition met/],
  ['run p2 --image=i', 1, /exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1/],
  ['delete quota q', 0, /deleted/],
  ['cluster-info', 0, /Kubernetes control plane/],
  ['cluster-info dump', 0, /"kind": "ServiceList"/],
  ['config view --minify', 0, /DATA\+OMITTED/],
  ['completion bash', 0, /__start_kubectl/],
  ['options', 0, /--warnings-as-errors/],
  ['plugin list', 1, /unable to find any kubectl plugins/],
  ['delete deployment,hpa,service,pod --all --now', 0, /deployment.apps "d" deleted/],
];

/** The colour of the answers is not what is looked at. */
const textOf = ({ stdout, stderr }: Outcome): string => `${stdout}${stderr}`;

for (const kubectl of new Set([newest, oldest])) {
  if (kubectl === undefined) continue;
  suite(`kubectl 1.${kubectl.minor}`, { skip }, () => {
    test('verbs on stored objects', async (t) => {
      const namespace = `verbs-${kubectl.minor}`;
      const admin = adminOf(join(folder, 'data'));
      await createNamespace(admin.client, namespace);
      await admin.close();
      for (const [words, code, output, input] of VERBS) {
        await t.test(words, async () => {
          const text = input === 'role' ? roleIn(namespace) : input;
          const outcome = await run(kubectl, `-n ${namespace} ${words}`, text);
          // Before 1.28 it asks for beta versions that no server of today has.
          if (words === 'auth whoami' && kubectl.minor < 28) return;
          assert.equal(outcome.code, code, textOf(outcome));
          assert.match(textOf(outcome), output);
        });
      }
    });
  });
}

/** What the guest's own web server says; it may still be starting. */
async function answerOf(port: number): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await (await fetch(`http://127.0.0.1:${port}/`)).text();
    } catch (error) {
      if (attempt >= 600) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

suite('a guest', { skip: skip || (whyNoGuests() ?? false) }, () => {
  // S-171
  // S-1232: The `kubectl top` of every version shows what a running machine takes, and its node.
  // Compat Pods, nodes, drain, P1, yes: log and portforward of launcher Pods
  test('its logs are read, its ports forwarded, and its Service has it as an endpoint', async (t) => {
    const kubectl = newest!;
    // Whatever happens, no guest outlives the test.
    t.after(() => run(kubectl, 'delete vm guest --ignore-not-found'));
    await importTinyGuest(join(folder, 'data'));
    const admin = adminOf(join(folder, 'data'));
    await admin.client.create(VIRTUAL_MACHINES, tinyVm('guest'));
    await admin.close();
    const ready = await run(kubectl, 'wait --for=condition=Ready vm/guest --timeout=80s');
    assert.equal(ready.code, 0, textOf(ready));
    const pod = (await run(kubectl, 'get pod -l app=tiny -o name')).stdout.trim();

    const compute = await run(kubectl, `logs ${pod}`);
    assert.equal(compute.code, 0, textOf(compute));
    const following = startKubectl(kubectl, ['logs', pod, '-c', 'guest-console-log', '-f'], { env, cwd: folder });
    await following.saw(/\S/);
    following.interrupt();
    await following.outcome;
    const disk = await run(kubectl, `logs ${pod} -c volumeroot`);
    assert.deepEqual([disk.code, disk.stdout], [0, '']);
    for (const [words, message] of [
      [`logs ${pod} -c nothing`, /container nothing is not valid for pod/],
      [`logs ${pod} --previous`, /previous terminated container "compute" in pod "[^"]*" not found/],
      [`exec ${pod} -- ls`, /runs no containers/],
    ] as const) {
      const outcome = await run(kubectl, words);
      assert.equal(outcome.code, 1);
      assert.match(textOf(outcome), message);
    }

    // Nothing can be debugged with a container: that is said, and kubectl does not wait for ever.
    const debug = await run(kubectl, `debug -it ${pod} --image=busybox -c why`);
    assert.match(textOf(debug), /this node runs virtual machines and no containers/);
    // Written after the status that ends the waiting.
    await eventually('an event of the refusal', async () => {
      const events = await run(kubectl, 'get events --field-selector reason=Failed -o jsonpath={.items[*].message}');
      return /ephemeral container "why": this node runs/.test(events.stdout);
    });

    for (const version of new Set([oldest!, kubectl])) {
      const pods = await run(version, 'top pod -l kubevirt.io=virt-launcher --containers --no-headers');
      assert.match(pods.stdout, /^virt-launcher-guest-\S+ +compute +\d+m +[1-9]\d*Mi *\n$/, textOf(pods));
      const nodes = await run(version, 'top node --no-headers');
      assert.match(nodes.stdout, /^\S+ +\d+m +\d+% +[1-9]\d*Mi +\d+% *\n$/, textOf(nodes));
    }
    const listed = await run(kubectl, 'get pods.metrics.k8s.io');
    assert.match(listed.stdout, /^NAME +CPU +MEMORY +WINDOW\nvirt-launcher-guest-\S+ +\d+[num]? +\d+[KM]i +[\d.]+s\n$/);

    const service = await run(kubectl, `expose ${pod} --name=web --port=80 --target-port=8080`);
    assert.equal(service.code, 0, textOf(service));
    // `kubectl wait` ends at once while there is no such object.
    await eventually('endpoints of the Service', async () => (await run(kubectl, 'get endpoints web')).code === 0);
    const endpoints = await run(
      kubectl,
      'wait --for=jsonpath={.subsets[0].addresses[0].targetRef.kind}=Pod endpoints/web --timeout=60s',
    );
    assert.equal(endpoints.code, 0, textOf(endpoints));
    const slices = await run(
      kubectl,
      'get endpointslice -l kubernetes.io/service-name=web -o jsonpath={.items[0].endpoints[0].conditions.ready}',
    );
    assert.equal(slices.stdout, 'true', textOf(slices));

    // The oldest over SPDY, the newest over WebSockets.
    for (const version of new Set([oldest!, kubectl])) {
      const forward = startKubectl(version, ['port-forward', pod, ':8080'], { env, cwd: folder });
      await forward.saw(/Forwarding from 127\.0\.0\.1:[0-9]+ -> 8080/);
      const port = /127\.0\.0\.1:([0-9]+)/.exec(forward.stdout())![1];
      for (let i = 0; i < 2; i++) assert.match(await answerOf(Number(port)), /hostname: guest|hostname: tiny/);
      forward.interrupt();
      await forward.outcome;
    }
    const name = pod.replace(/^pod\//, '');
    for (const id of [`pods/${name}:8080`, `pods/http:${name}:8080`, 'services/web:80', 'services/web']) {
      const page = await run(kubectl, `get --raw /api/v1/namespaces/default/${id}/proxy/`);
      assert.match(page.stdout, /hostname: guest|hostname: tiny/, textOf(page));
    }
  });
});
