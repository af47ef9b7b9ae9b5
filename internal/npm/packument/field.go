package packument

// field classifies a member of a version's object.
type field uint16

const (
	fieldName field = 1 << iota
	fieldVersion
	fieldDist
	fieldScripts
	fieldInstallScript
	fieldDeprecated
	fieldGyp
	fieldLicense
	// fieldKeep marks the members of the abbreviated form.
	fieldKeep
	// fieldOnce are those that policy or identity depends on: given twice, the version is dropped.
	fieldOnce = fieldName | fieldVersion | fieldDist | fieldScripts | fieldInstallScript | fieldGyp | fieldLicense
)

// fieldOf knows the abbreviated form: the members that npm's package-metadata document lists for
// its "abbreviated version object", and two more that installers read when they find them,
// bundledDependencies (the other spelling) and libc. hasInstallScript belongs to it too, but is
// always rewritten from the facts.
func fieldOf(key string) field {
	switch key {
	case "name":
		return fieldName | fieldKeep
	case "version":
		return fieldVersion | fieldKeep
	case "dist":
		return fieldDist | fieldKeep
	case "deprecated":
		return fieldDeprecated | fieldKeep
	case "scripts":
		return fieldScripts
	case "hasInstallScript":
		return fieldInstallScript
	case "gypfile":
		return fieldGyp
	case "license":
		return fieldLicense
	case "dependencies", "optionalDependencies", "devDependencies", "bundleDependencies", "bundledDependencies",
		"peerDependencies", "peerDependenciesMeta", "acceptDependencies", "bin", "directories", "engines", "os", "cpu", "libc",
		"funding", "_hasShrinkwrap":
		return fieldKeep
	}
	return 0
}
