#!/bin/sh
# Makes the keys and the folder beside this file: plugins that cosign 3.1.3 signed.
#
#   make.sh REGISTRY      such as localhost:5000, an empty registry of CNCF's distribution; needs cosign, curl and trainyard
set -eu
cd "$(dirname "$0")"
registry=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COSIGN_PASSWORD=

# Pushes the smallest plugin, whose file ends with this text, and prints its digest.
push() {
  printf '\000asm\015\000\001\000%s' "$1" > "$work/file"
  printf '{}' > "$work/config"
  for blob in file config; do
    digest=$(sha256sum "$work/$blob" | cut -d ' ' -f 1)
    echo "$digest" > "$work/$blob.digest"
    url=$(curl -sSi -X POST "http://$registry/v2/acme/x/blobs/uploads/" | sed -n 's/^[Ll]ocation: //p' | tr -d '\r')
    curl -sSf -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$work/$blob" "$url&digest=sha256:$digest"
  done
  type=application/vnd.oci.image.manifest.v1+json
  printf '{"schemaVersion":2,"mediaType":"%s","config":{"mediaType":"application/vnd.wasm.config.v0+json","digest":"sha256:%s","size":2},"layers":[{"mediaType":"application/wasm","digest":"sha256:%s","size":%d}]}' \
    "$type" "$(cat "$work/config.digest")" "$(cat "$work/file.digest")" "$(wc -c < "$work/file")" > "$work/manifest"
  curl -sSf -X PUT -H "Content-Type: $type" --data-binary "@$work/manifest" "http://$registry/v2/acme/x/manifests/$1"
  echo "sha256:$(sha256sum "$work/manifest" | cut -d ' ' -f 1)"
}

sign() {
  cosign sign --yes --key "$work/$1.key" --signing-config "$work/none.json" --allow-http-registry "$registry/acme/x@$2"
}

attest() {
  cosign attest --yes --key "$work/acme.key" --signing-config "$work/none.json" --allow-http-registry \
    --type "$1" --predicate "$2" "$registry/acme/x@$3"
}

# Neither a transparency log nor a timestamp authority.
cosign signing-config create --out "$work/none.json"
for name in acme other; do
  cosign generate-key-pair --output-key-prefix "$work/$name"
  cp "$work/$name.pub" .
done
echo '{"spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "name": "x", "packages": []}' > "$work/sbom.json"
echo '{"buildDefinition": {"buildType": "https://example.com/build/v1", "externalParameters": {}}, "runDetails": {"builder": {"id": "https://example.com/ci"}}}' > "$work/provenance.json"

signed=$(push signed)
sign other "$signed"
sign acme "$signed"
attest spdxjson "$work/sbom.json" "$signed"
attest slsaprovenance1 "$work/provenance.json" "$signed"
attested=$(push attested)
attest spdxjson "$work/sbom.json" "$attested"

rm -rf layout
for tag in signed attested; do
  trainyard plugin copy "$registry/acme/x:$tag" "oci:layout:$tag"
done
