# Sets `products` to the products that have a reference, and `reference`, which makes one. To be sourced after scripts/built-modules.sh.
products=(Loveseat CouchbaseLiteSwift LoveseatCouchDB LoveseatDiscovery LoveseatWeb LoveseatTesting LoveseatCouchDBTesting)
target=$(swiftc -print-target-info | sed -n 's/.*"triple": "\(.*\)",/\1/p' | head -1)

# reference PRODUCT ARCHIVE [options of docc]: compiles the catalogue of a product, with the symbols of its last release build. Any warning is
# an error, such as a link to a symbol that does not exist.
reference() {
    local product="$1" archive="$2" symbols reexported= status=0
    shift 2
    case $product in
        Loveseat) reexported=LoveseatCore,LoveseatModel,LoveseatIdentity,LoveseatNetwork ;;
        LoveseatDiscovery) reexported=LoveseatDiscoveryCore ;;
    esac
    symbols=$(mktemp -d)
    swift-symbolgraph-extract -module-name "$product" "${flags[@]}" -target "$target" -minimum-access-level public \
        ${reexported:+"-experimental-allowed-reexported-modules=$reexported"} \
        -skip-synthesized-members -skip-inherited-docs -output-dir "$symbols"
    docc convert "Sources/$product/$product.docc" --additional-symbol-graph-dir "$symbols" \
        --fallback-display-name "$product" --fallback-bundle-identifier "loveseat.${product,,}" --warnings-as-errors \
        --output-dir "$archive" "$@" || status=1
    rm -rf "$symbols"
    return $status
}
