/** status.typeChecking of a ValidatingAdmissionPolicy, written by its controller through the API. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createPolicyStatusController } from '../../src/control/kube-controllers/policy-status-controller.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type RunningControllers, runControllers } from '../testkit/run-controllers.ts';

const PATH = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';

let server: InProcessServer;
let controllers: RunningControllers;

before(async () => {
  server = await startServer();
  await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: { spec: { type: 'object', properties: { size: { type: 'integer' } } } },
            },
          },
        },
      ],
    },
  } as never);
  controllers = runControllers(server, (environment) => [createPolicyStatusController(environment)]);
});

after(() => controllers.stop());

/** The status once the controller has seen the generation. */
async function statusOf(name: string) {
  const watch = await server.watch(`${PATH}?watch=true&fieldSelector=metadata.name=${name}`);
  for (;;) {
    const frame = await watch.next();
    assert.ok(frame);
    const { metadata, status } = frame.object;
    if (status?.observedGeneration !== metadata.generation) continue;
    watch.close();
    return status;
  }
}

const policy = (name: string, rule: object, spec: object) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name },
  spec: { matchConstraints: { resourceRules: [{ operations: ['*'], ...rule }] }, ...spec },
});

const DEPLOYMENTS = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] };
const WIDGETS = { apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['widgets'] };

test('a policy without faults has an empty typeChecking', async () => {
  await server.create(
    PATH,
    policy('good', DEPLOYMENTS, {
      variables: [{ name: 'n', expression: 'object.spec.replicas' }],
      validations: [{ expression: 'variables.n > 1', messageExpression: "'it is ' + string(variables.n)" }],
    }) as never,
  );
  assert.deepEqual(await statusOf('good'), { observedGeneration: 1, typeChecking: {} });
});

test('faults are named with their field, kind and place', async () => {
  await server.create(
    PATH,
    policy('bad', DEPLOYMENTS, {
      validations: [{ expression: "object.spec.replicas > '1'", messageExpression: 'string(object.replicas)' }],
    }) as never,
  );
  const { typeChecking } = await statusOf('bad');
  assert.deepEqual(typeChecking.expressionWarnings, [
    {
      fieldRef: 'spec.validations[0].expression',
      warning: `apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'
 | object.spec.replicas > '1'
 | .....................^
`,
    },
    {
      fieldRef: 'spec.validations[0].messageExpression',
      warning: `apps/v1, Kind=Deployment: ERROR: <input>:1:14: undefined field 'replicas'
 | string(object.replicas)
 | .............^
`,
    },
  ]);
});

test('custom kinds are checked as well, wildcards are not', async () => {
  const validations = [{ expression: "object.spec.size > 1 && object.spec.colour == 'red'" }];
  await server.create(PATH, policy('custom', WIDGETS, { validations }) as never);
  await server.create(PATH, policy('wild', { ...WIDGETS, apiVersions: ['*'] }, { validations }) as never);
  const { typeChecking } = await statusOf('custom');
  assert.match(
    typeChecking.expressionWarnings[0].warning,
    /^example\.com\/v1, Kind=Widget: .*undefined field 'colour'/,
  );
  assert.deepEqual((await statusOf('wild')).typeChecking, {});
});

test('amounts of built-in kinds have no type, and core means every group', async () => {
  const core = { apiGroups: [''], apiVersions: ['v1'] };
  const limits = "object.spec.containers.all(c, c.resources.limits['cpu'] != '1')";
  await server.create(
    PATH,
    policy('amounts', { ...core, resources: ['pods'] }, { validations: [{ expression: limits }] }) as never,
  );
  await server.create(
    PATH,
    policy(
      'events',
      { ...core, resources: ['events'] },
      { validations: [{ expression: 'has(object.note)' }] },
    ) as never,
  );
  const warningOf = async (name: string) => (await statusOf(name)).typeChecking.expressionWarnings[0].warning;
  assert.match(await warningOf('amounts'), /^\/v1, Kind=Pod: ERROR: <input>:1:42: undefined field 'limits'\n/);
  // events.k8s.io/v1 has a note.
  assert.match(await warningOf('events'), /^\/v1, Kind=Event: [^=]*undefined field 'note'[^=]*$/);
  await server.create(
    PATH,
    policy('both', { ...core, resources: ['events'] }, { validations: [{ expression: 'object.nope == 1' }] }) as never,
  );
  assert.deepEqual((await warningOf('both')).match(/\S*, Kind=\w+/g), [
    '/v1, Kind=Event',
    'events.k8s.io/v1, Kind=Event',
  ]);
});

test('a changed policy is checked again', async () => {
  await server.create(
    PATH,
    policy('later', DEPLOYMENTS, { validations: [{ expression: 'object.nope == 1' }] }) as never,
  );
  assert.equal((await statusOf('later')).typeChecking.expressionWarnings.length, 1);
  await server.request('PATCH', `${PATH}/later`, {
    body: { spec: { validations: [{ expression: 'object.spec.replicas == 1' }] } },
  });
  // Applied as `typeChecking: {}`: what an apply empties is gone.
  assert.deepEqual(await statusOf('later'), { observedGeneration: 2 });
});
