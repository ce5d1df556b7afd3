/** Large objects of built-in and custom kinds. */
import { at, type Body, CUSTOM, custom, DEPLOYMENTS, deployment, map, pod, repeated } from './body.ts';

export function objectBombs(): Body[] {
  return [
    at('many containers', DEPLOYMENTS, deployment(repeated(30_000, (i) => `{"name":"c${i}","image":"a"}`))),
    at('many empty containers', DEPLOYMENTS, deployment(repeated(30_000, () => '{}'))),
    at('many nulls for containers', DEPLOYMENTS, deployment(repeated(18_000, () => 'null'))),
    at('many containers of a small body', DEPLOYMENTS, deployment(repeated(2_000, () => '{}'))),
    at(
      'a Pod of many containers',
      '/api/v1/namespaces/default/pods',
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bomb"},"spec":{"containers":[${repeated(15_000, (i) => `{"name":"c${i}","image":"a"}`)}]}}`,
    ),
    at(
      'a machine of many disks',
      '/apis/kubevirt.io/v1/namespaces/default/virtualmachines',
      `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachine","metadata":{"name":"bomb"},"spec":{"runStrategy":"Halted","template":{"spec":{"domain":{"devices":{"disks":[${repeated(30_000, (i) => `{"name":"d${i}","disk":{}}`)}]}},"volumes":[${repeated(30_000, (i) => `{"name":"d${i}","emptyDisk":{"capacity":"1Gi"}}`)}]}}}}`,
    ),
    at(
      'defaults for 40,000 fields',
      '/apis/fuzz.example/v1/namespaces/default/filleds',
      '{"apiVersion":"fuzz.example/v1","kind":"Filled","metadata":{"name":"bomb"},"spec":{}}',
    ),
    at('many bad containers', DEPLOYMENTS, deployment(repeated(20_000, (i) => `{"name":"C ${i}","ports":[{}]}`))),
    at(
      'a container with much',
      DEPLOYMENTS,
      deployment(`{"name":"c","image":"a","env":[${repeated(40_000, (i) => `{"name":"E${i}","value":"v"}`)}]}`),
    ),
    at(
      'a label selector of 100 kB',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[${repeated(2_000, (i) => `{"key":"k${i}","operator":"In","values":["a","b"]}`)}]`,
      ),
    ),
    at(
      'a label selector of many values',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[{"key":"a","operator":"In","values":[${repeated(200_000, (i) => `"v${i}"`)}]}]`,
      ),
    ),
    at(
      'a label selector of bad values',
      DEPLOYMENTS,
      deployment(
        '{"name":"c","image":"a"}',
        `,"matchExpressions":[${repeated(40_000, (i) => `{"key":" ${i}","operator":"X","values":["-"]}`)}]`,
      ),
    ),
    at(
      'many rules',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"bomb"},"rules":[${repeated(30_000, (i) => `{"apiGroups":[""],"resources":["r${i}"],"verbs":["get"]}`)}]}`,
    ),
    at(
      'many annotations',
      '/api/v1/namespaces/default/configmaps',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb","annotations":{${repeated(60_000, (i) => `"a${i}":"v"`)}}}}`,
    ),
    at(
      'binary data that is none',
      '/api/v1/namespaces/default/configmaps',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"binaryData":{"a":"${'A'.repeat(2_900_000)}"}}`,
    ),
    at('many bad keys', '/api/v1/namespaces/default/configmaps', map(`{${repeated(80_000, (i) => `" ${i}":"v"`)}}`)),
    at(
      'a mistake at the end',
      '/api/v1/namespaces/default/configmaps',
      map(`{${repeated(150_000, (i) => `"k${i}":"v"`)},`),
    ),
    at(
      'a number too long at the end',
      '/api/v1/namespaces/default/configmaps',
      map(`[${repeated(300_000, () => '1')},12345678901234567890]`),
    ),
    at('custom set', CUSTOM, custom(`"set":[${repeated(150_000, (i) => `"s${i}"`)}]`)),
    at('custom set of the same', CUSTOM, custom(`"set":[${repeated(300_000, () => '"s"')}]`)),
    at('custom keyed list', CUSTOM, custom(`"keyed":[${repeated(40_000, (i) => `{"name":"n${i}","value":1}`)}]`)),
    at('custom keyed list without keys', CUSTOM, custom(`"keyed":[${repeated(100_000, () => '{}')}]`)),
    at(
      'custom map with a bad pattern',
      CUSTOM,
      custom(`"table":{${repeated(60_000, (i) => `"k${i}":"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"`)}}`),
    ),
    at('custom open content', CUSTOM, custom(`"open":{${repeated(60_000, (i) => `"k${i}":{"a":1}`)}}`)),
    at('custom defaults', CUSTOM, custom(`"defaulted":[${repeated(300_000, () => '{}')}]`)),
    at('custom unknown fields', CUSTOM, custom(repeated(150_000, (i) => `"u${i}":1`))),
    at(
      'a Pod of many containers with amounts',
      PODS,
      pod(`"containers":[${repeated(7_000, (i) => `{"name":"c${i}","image":"a",${AMOUNTS}}`)}]`),
    ),
    at(
      'a Deployment of many containers with amounts',
      DEPLOYMENTS,
      deployment(repeated(12_000, (i) => `{"name":"c${i}","image":"a",${AMOUNTS}}`)),
    ),
    at(
      'a container of many amounts',
      PODS,
      pod(
        `"containers":[{"name":"c","image":"a","resources":{"limits":{${repeated(60_000, (i) => `"a.b/r${i}":"1"`)}},"requests":{${repeated(60_000, (i) => `"a.b/r${i}":"1"`)}}}}]`,
      ),
    ),
    at(
      'many topology constraints',
      PODS,
      pod(
        `"containers":[{"name":"c","image":"a"}],"topologySpreadConstraints":[${repeated(60_000, (i) => `{"maxSkew":1,"topologyKey":"k${i}"}`)}]`,
      ),
    ),
    at(
      'many terms of an affinity',
      PODS,
      pod(
        `"containers":[{"name":"c","image":"a"}],"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[${repeated(60_000, (i) => `{"topologyKey":" ${i}"}`)}]}}`,
      ),
    ),
    at(
      'many topology keys of a driver',
      '/apis/storage.k8s.io/v1/csinodes',
      `{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"bomb"},"spec":{"drivers":[{"name":"d","nodeID":"n","topologyKeys":[${repeated(60_000, (i) => `"k${i}"`)}]}]}}`,
    ),
    at(
      'a certificate request of many elements',
      '/apis/certificates.k8s.io/v1/certificatesigningrequests',
      `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"bomb"},"spec":{"signerName":"a.b/c","usages":["client auth"],"request":"${btoa(`-----BEGIN CERTIFICATE REQUEST-----\n${'A'.repeat(1_000_000)}\n-----END CERTIFICATE REQUEST-----\n`)}"}}`,
    ),
    at(
      'many rules of a policy',
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies',
      `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"bomb"},"spec":{"validations":[{"expression":"true"}],"matchConstraints":{"resourceRules":[${repeated(60_000, () => '{}')}]}}}`,
    ),
  ];
}

const PODS = '/api/v1/namespaces/default/pods';
/** Each with a warning. */
const AMOUNTS = '"resources":{"limits":{"cpu":"1","memory":"0.5"},"requests":{"cpu":"0.5m","memory":"100m"}}';
